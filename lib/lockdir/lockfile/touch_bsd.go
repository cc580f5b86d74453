//go:build darwin || freebsd || netbsd || openbsd

package lockfile

import (
	"time"

	"golang.org/x/sys/unix"
)

// touch uses this machine's clock: futimes(2) has no 'now'.
func touch(fd int) error { return setModified(fd, time.Now()) }

// setModified sets both times of an open file, to the microsecond.
func setModified(fd int, at time.Time) error {
	tv := unix.NsecToTimeval(at.UnixNano())
	return unix.Futimes(fd, []unix.Timeval{tv, tv})
}
