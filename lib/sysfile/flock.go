package sysfile

import (
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"
)

// The first pause of Flock, about the time of a few system calls under a lock, and the longest pause.
const (
	flockLeast = time.Millisecond
	flockMost  = 4 * time.Millisecond
)

// Flock locks the open file fd by flock(2). how is unix.LOCK_SH or unix.LOCK_EX. Flock tries for at most wait,
// once if wait is 0. If the file is still locked, the error is EWOULDBLOCK. (flock(2) has no timeout, and a
// signal to interrupt it would reach the whole process.) Do not use LOCK_EX on an open file that has LOCK_SH: a
// conversion that fails loses the lock.
func Flock(fd, how int, wait time.Duration) error {
	deadline := time.Now().Add(wait)
	for pause := flockLeast; ; pause = min(2*pause, flockMost) {
		err := Retry(func() error { return unix.Flock(fd, how|unix.LOCK_NB) })
		left := time.Until(deadline)
		if err != unix.EWOULDBLOCK || left <= 0 {
			return err
		}
		// A random pause keeps waiting processes from trying in step.
		time.Sleep(min(left, pause/2+rand.N(pause)))
	}
}

func Unlock(fd int) error {
	return Retry(func() error { return unix.Flock(fd, unix.LOCK_UN) })
}
