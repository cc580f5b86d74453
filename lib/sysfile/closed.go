package sysfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// WasClosed reports whether a standard descriptor was closed when this process started: the runtime has
// then opened /dev/null for reading and writing; a redirection opens it for only one of the two.
func WasClosed(fd int) bool {
	var found, null unix.Stat_t
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	return err == nil && flags&unix.O_ACCMODE == unix.O_RDWR &&
		unix.Fstat(fd, &found) == nil && unix.Stat(os.DevNull, &null) == nil && found.Rdev == null.Rdev && found.Mode == null.Mode
}
