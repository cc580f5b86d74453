package sysfile

import "golang.org/x/sys/unix"

// NodeName returns what `uname -n` prints; a container may have a name of its own (uts_namespaces(7)).
func NodeName() (string, error) {
	var system unix.Utsname
	if err := unix.Uname(&system); err != nil {
		return "", err
	}
	return unix.ByteSliceToString(system.Nodename[:]), nil
}
