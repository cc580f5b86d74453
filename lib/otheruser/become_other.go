//go:build !linux

package otheruser

import "adlock/lib/fault"

var errLinux = fault.New(fault.Unavailable, "other users", "their directories are read on Linux only")

func become(User) error { return errLinux }

// OpenBelow fails: it is for Linux only.
func OpenBelow(string, ...string) (fd int, err error) { return -1, errLinux }

// Names fails: it is for Linux only.
func Names(int, int) (names []string, more bool, err error) { return nil, false, errLinux }
