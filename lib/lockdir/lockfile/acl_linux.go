package lockfile

import "golang.org/x/sys/unix"

// hasACL reports whether a directory has an access control list (acl(5)): then the bits
// of the group are the most that a user named there may do.
func hasACL(path string) bool {
	_, err := unix.Lgetxattr(path, "system.posix_acl_access", nil)
	return err == nil
}
