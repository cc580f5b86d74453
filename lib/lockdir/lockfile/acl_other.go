//go:build !linux

package lockfile

// hasACL is false where access control lists do not show in the bits of the group, or
// cannot be asked for.
func hasACL(string) bool { return false }
