package way

import "golang.org/x/sys/unix"

// hasACL reports an access control list (acl(5)): the group bits are then the most that any in it may do.
func hasACL(path string) bool {
	_, err := unix.Lgetxattr(path, "system.posix_acl_access", nil)
	return err == nil
}
