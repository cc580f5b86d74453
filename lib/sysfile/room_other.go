//go:build !linux && !darwin && !freebsd

package sysfile

// NoRoom returns nil: on these systems a dry run does not find that a file system is full or
// read-only. The run itself reports it.
func NoRoom(string) error { return nil }

// NoRoomIn returns nil: on these systems it is not known why a file cannot grow.
func NoRoomIn(int) error { return nil }
