package lockfile

import "golang.org/x/sys/unix"

// hasACL reports whether a directory has an access control list (acl(5)): its group bits are then
// the most that any user in the list may do.
func hasACL(path string) bool {
	_, err := unix.Lgetxattr(path, "system.posix_acl_access", nil)
	return err == nil
}
