package lockfile

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

func touch(fd int) error { return futimens(fd, nil) }

func setModified(fd int, at time.Time) error {
	ts := unix.NsecToTimespec(at.UnixNano())
	return futimens(fd, &[2]unix.Timespec{ts, ts})
}

// futimens is utimensat(2) without a path, which the unix package does not offer.
func futimens(fd int, ts *[2]unix.Timespec) error {
	_, _, errno := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(ts)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
