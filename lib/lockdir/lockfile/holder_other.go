//go:build !linux

package lockfile

// flockHolder returns 0: these systems do not show the holder of a flock(2).
func (f *file) flockHolder() int { return 0 }
