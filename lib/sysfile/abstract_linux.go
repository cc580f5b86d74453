package sysfile

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// HasAbstract: this system has abstract socket names (unix(7)): names outside of any file system,
// which are free again when their process is gone.
const HasAbstract = true

// ErrStranger says that a process of another user has an abstract name.
var ErrStranger = errors.New("a process of another user has this name")

// TakeAbstract takes an abstract name, of 107 bytes at most, until the descriptor is closed.
// EADDRINUSE: the process holder of this user has it (0: it is not known which).
func TakeAbstract(name string) (fd, holder int, err error) {
	const tries = 20
	for range tries {
		if fd, err = listenAbstract(name); err != unix.EADDRINUSE {
			return fd, 0, err
		}
		// Between bind and listen the holder cannot be asked; and it may have gone.
		if holder, err = AbstractHolder(name); err != unix.ECONNREFUSED {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err == nil || err == unix.EAGAIN { // EAGAIN: so many have asked it
		err = unix.EADDRINUSE
	}
	return -1, holder, err
}

func listenAbstract(name string) (int, error) {
	fd, err := Socket()
	if err != nil {
		return -1, err
	}
	const most = 4096 // processes that ask for the holder; it answers none
	if err = unix.Bind(fd, &unix.SockaddrUnix{Name: "@" + name}); err == nil {
		err = unix.Listen(fd, most)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// AbstractHolder is the process of this user that has an abstract name. ECONNREFUSED: none
// has; ErrStranger: another user's has.
func AbstractHolder(name string) (pid int, err error) {
	fd, err := Socket()
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	if err := unix.SetNonblock(fd, true); err != nil {
		return 0, err
	}
	if err := Retry(func() error { return unix.Connect(fd, &unix.SockaddrUnix{Name: "@" + name}) }); err != nil {
		return 0, err
	}
	holder, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	if int(holder.Uid) != unix.Geteuid() {
		return 0, ErrStranger
	}
	return int(holder.Pid), nil
}
