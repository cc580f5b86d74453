package sysfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// WasClosed reports whether a standard descriptor is /dev/null, open for reading and writing, as the runtime opens
// it in place of a descriptor that was closed at the start. `</dev/null` opens it for reading only.
func WasClosed(fd int) bool {
	var found, null unix.Stat_t
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	return err == nil && flags&unix.O_ACCMODE == unix.O_RDWR &&
		unix.Fstat(fd, &found) == nil && unix.Stat(os.DevNull, &null) == nil && found.Rdev == null.Rdev && found.Mode == null.Mode
}
