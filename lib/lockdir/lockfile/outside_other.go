//go:build !linux

package lockfile

// isOutside is false: there are no user namespaces here.
func isOutside(uint32) bool { return false }
