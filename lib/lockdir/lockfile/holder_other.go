//go:build !linux

package lockfile

// GuardHolder returns 0: these systems do not show the holder of a flock(2).
func (a *Active) GuardHolder() int { return 0 }
