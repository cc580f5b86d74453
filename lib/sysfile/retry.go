// Package sysfile has system calls that several packages need. It knows nothing of the locks of atoms.
// Errors are the system's error numbers, for errors.Is; the caller adds the file or the process.
package sysfile

import "golang.org/x/sys/unix"

// Retry repeats call as long as a signal interrupts it (EINTR, see signal(7)). Retry is not for close(2): Linux
// has closed the descriptor, and another file may have its number.
func Retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

// RetryN is Retry for a call that returns a number.
func RetryN(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != unix.EINTR {
			return n, err
		}
	}
}

// Poll returns the events that poll(2) finds now: those asked for and those always reported. An error counts as none.
func Poll(fd int, events int16) int16 {
	polled := []unix.PollFd{{Fd: int32(fd), Events: events}}
	_, _ = RetryN(func() (int, error) { return unix.Poll(polled, 0) })
	return polled[0].Revents
}
