//go:build !linux

package way

// hasACL is false: access control lists do not show in the group bits here, or cannot be queried.
func hasACL(string) bool { return false }
