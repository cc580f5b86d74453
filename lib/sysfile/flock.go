package sysfile

import (
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"
)

// The pauses of Flock between its tries: at first as long as a process holds a lock for a few
// system calls, then longer, so that a long wait costs little.
const (
	flockLeast = time.Millisecond
	flockMost  = 4 * time.Millisecond
)

// Flock takes flock(2) of the open file fd, unix.LOCK_SH or unix.LOCK_EX, and tries for at most
// wait, once if that is 0: EWOULDBLOCK if another process has it until then. (The call has no
// timeout of its own, and a signal to interrupt it would be the whole process's.) The lock ends
// with the last descriptor of this open file.
//
// Do not take LOCK_EX through a file that has LOCK_SH: a conversion that fails loses the lock
// (flock(2)).
func Flock(fd, how int, wait time.Duration) error {
	deadline := time.Now().Add(wait)
	for pause := flockLeast; ; pause = min(2*pause, flockMost) {
		err := Retry(func() error { return unix.Flock(fd, how|unix.LOCK_NB) })
		left := time.Until(deadline)
		if err != unix.EWOULDBLOCK || left <= 0 {
			return err
		}
		// Jitter, or processes that wait for each other would wake together.
		time.Sleep(min(left, pause/2+rand.N(pause)))
	}
}

// Unlock lets the flock of an open file go.
func Unlock(fd int) error {
	return Retry(func() error { return unix.Flock(fd, unix.LOCK_UN) })
}
