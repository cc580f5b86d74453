package sysfile

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// SocketPair returns two connected stream sockets that no child inherits. Not every system has SOCK_CLOEXEC, so
// the sockets are made and marked while no other thread forks.
func SocketPair() (ours, theirs int, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return -1, -1, err
	}
	unix.CloseOnExec(pair[0])
	unix.CloseOnExec(pair[1])
	return pair[0], pair[1], nil
}

// Socket returns a local socket that no child inherits (SocketPair). kind is unix.SOCK_STREAM or unix.SOCK_DGRAM.
func Socket(kind int) (int, error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := unix.Socket(unix.AF_UNIX, kind, 0)
	if err != nil {
		return -1, err
	}
	unix.CloseOnExec(fd)
	return fd, nil
}
