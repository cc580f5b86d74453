package sysfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// WasClosed reports whether one of the standard descriptors was closed when this process started:
// the runtime has opened /dev/null in its place, for reading and writing, which a redirection to
// /dev/null does not.
func WasClosed(fd int) bool {
	var found, null unix.Stat_t
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	return err == nil && flags&unix.O_ACCMODE == unix.O_RDWR &&
		unix.Fstat(fd, &found) == nil && unix.Stat(os.DevNull, &null) == nil && found.Rdev == null.Rdev && found.Mode == null.Mode
}
