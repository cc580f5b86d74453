//go:build !linux

package main

import "adlock/lib/fault"

var errLinuxOnly = fault.New(fault.Unavailable, "other users", "their directories are read on Linux only")

func become(otherUser) error { return errLinuxOnly }

// openBelow fails: it is for Linux only.
func openBelow(string, ...string) (fd int, err error) { return -1, errLinuxOnly }

// namesIn fails: it is for Linux only.
func namesIn(int, int) (names []string, more bool, err error) { return nil, false, errLinuxOnly }
