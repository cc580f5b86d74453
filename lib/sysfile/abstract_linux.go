package sysfile

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// HasAbstract tells that this system has abstract socket names (unix(7)). They are outside of any
// file system, and free again when their process is gone.
const HasAbstract = true

// ErrStranger says that a process of another user has an abstract name.
var ErrStranger = errors.New("a process of another user has this name")

// TakeAbstract takes an abstract name, of 107 bytes at most, until the descriptor is closed. If
// another process of this user has the name, the error is EADDRINUSE and holder its pid (0:
// unknown).
func TakeAbstract(name string) (fd, holder int, err error) {
	const tries = 20
	for range tries {
		if fd, err = listenAbstract(name); err != unix.EADDRINUSE {
			return fd, 0, err
		}
		// The holder does not listen yet, or has ended meanwhile. Try again.
		if holder, err = AbstractHolder(name); err != unix.ECONNREFUSED {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err == nil || err == unix.EAGAIN { // EAGAIN: the holder's queue of connections is full
		err = unix.EADDRINUSE
	}
	return -1, holder, err
}

func listenAbstract(name string) (int, error) {
	fd, err := Socket(unix.SOCK_STREAM)
	if err != nil {
		return -1, err
	}
	const most = 4096 // connections of processes that look up the holder; none is accepted
	if err = unix.Bind(fd, &unix.SockaddrUnix{Name: "@" + name}); err == nil {
		err = unix.Listen(fd, most)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// AbstractHolder returns the process of this user that has an abstract name. ECONNREFUSED: no
// process has it; ErrStranger: a process of another user has it.
func AbstractHolder(name string) (pid int, err error) {
	fd, err := Socket(unix.SOCK_STREAM)
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
