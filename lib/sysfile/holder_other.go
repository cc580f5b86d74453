//go:build !linux

package sysfile

import "golang.org/x/sys/unix"

// FlockHolder returns 0: these systems do not show the holder of a flock(2).
func FlockHolder(fd int, shared bool) int { return 0 }

// HoldsFlock is false: these systems do not show what a process has locked.
func HoldsFlock(pid int, st *unix.Stat_t, shared bool) bool { return false }
