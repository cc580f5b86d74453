package sysfile

import (
	"strings"

	"golang.org/x/sys/unix"
)

// NodeName returns what `uname -n` prints, without blanks around it, as shells read it; a container may have its own.
func NodeName() (string, error) {
	var system unix.Utsname
	if err := unix.Uname(&system); err != nil {
		return "", err
	}
	return strings.Trim(unix.ByteSliceToString(system.Nodename[:]), " \t"), nil
}
