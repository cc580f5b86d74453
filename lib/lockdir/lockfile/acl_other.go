//go:build !linux

package lockfile

// hasACL is false on systems where access control lists do not show in the group bits, or cannot
// be queried.
func hasACL(string) bool { return false }
