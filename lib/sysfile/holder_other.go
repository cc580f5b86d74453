//go:build !linux

package sysfile

// FlockHolder returns 0: these systems do not show the holder of a flock(2).
func FlockHolder(dev, ino uint64, shared bool) int { return 0 }

// HoldsFlock is false: these systems do not show what a process has locked.
func HoldsFlock(pid int, ino uint64, shared bool) bool { return false }
