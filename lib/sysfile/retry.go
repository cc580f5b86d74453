// Package sysfile has system calls that several packages need: calls that are retried after
// EINTR, flock(2) with a deadline, sockets that no child inherits, and a few names of the
// system's. It knows nothing of locks.
//
// Errors are the system's error numbers, for errors.Is: the caller knows the file or process, and
// adds it.
package sysfile

import "golang.org/x/sys/unix"

// Retry makes the call, again for as long as a signal cuts it short (EINTR), and
// returns its last error. The runtime installs its handlers with SA_RESTART, so
// most calls go on by themselves; not poll(2), a socket with a timeout, or a file
// on FUSE and on some network file systems (signal(7)).
//
// Not for close(2): Linux has closed the descriptor then, and the number may be
// another's.
func Retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

// RetryN is Retry for a call that returns a number: a descriptor, a count, a pid.
func RetryN(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != unix.EINTR {
			return n, err
		}
	}
}
