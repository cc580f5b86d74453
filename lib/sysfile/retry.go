// Package sysfile has system calls that several packages need: calls that are retried after EINTR,
// flock(2) with a deadline, sockets that no child inherits, and a few names that the system
// defines. It does not depend on the locks of atoms.
//
// Errors are the system's error numbers, for errors.Is. The caller adds the file or the process.
package sysfile

import "golang.org/x/sys/unix"

// Retry repeats call as long as a signal interrupts it (EINTR), and returns its last error. The
// runtime installs its handlers with SA_RESTART, so most calls go on by themselves. Exceptions are
// poll(2), sockets with a timeout, and files on FUSE and on some network file systems (signal(7)).
//
// Do not use it for close(2): when Linux returns EINTR, the descriptor is closed, and another file
// may have its number.
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
