//go:build !linux && !darwin && !freebsd

package sysfile

// NoRoom returns nil: on these systems a full file system shows only when a file cannot be made.
func NoRoom(string) error { return nil }

// NoRoomIn returns nil: on these systems it is not known why a file cannot grow.
func NoRoomIn(int) error { return nil }
