package main

import (
	"os"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/sysfile"
)

// dial connects to the holder of the acquisition. Its socket is reached from within
// the lock directory: the path of a socket may have little more than 100 bytes
// (unix(7)).
func dial(dir, token string) (*os.File, error) {
	d, err := lockfile.Open(dir) // checked: only this user's holders are there
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if err := unix.Fchdir(d.Fd()); err != nil {
		return nil, err
	}
	fd, err := sysfile.Socket(unix.SOCK_STREAM)
	if err != nil {
		return nil, err
	}
	// Connect while the socket still blocks: otherwise connect(2) could fail with EAGAIN.
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: atom.HolderSocketName(token)}); err != nil {
		unix.Close(fd)
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), atom.HolderSocketName(token)), nil
}

// listen makes the holder's socket; it leaves this process in the lock directory.
func listen(d *lockfile.Dir, token string) (*os.File, error) {
	if err := unix.Fchdir(d.Fd()); err != nil {
		return nil, err
	}
	fd, err := sysfile.Socket(unix.SOCK_STREAM)
	if err != nil {
		return nil, err
	}
	unix.Umask(0o077)
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: atom.HolderSocketName(token)}); err != nil {
		unix.Close(fd)
		return nil, err
	}
	if err := unix.Listen(fd, 8); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), atom.HolderSocketName(token)), nil
}

// accept returns the next connection.
func accept(listener *os.File) (*os.File, error) {
	for {
		fd, _, err := unix.Accept(int(listener.Fd()))
		switch err {
		case nil:
			unix.CloseOnExec(fd)
			return os.NewFile(uintptr(fd), "script"), nil
		case unix.EINTR, unix.ECONNABORTED:
		default:
			return nil, err
		}
	}
}
