package way

import "golang.org/x/sys/unix"

// hasACL reports whether the file has an access control list (acl(5)), which its group bits then limit.
func hasACL(path string) bool {
	_, err := unix.Lgetxattr(path, "system.posix_acl_access", nil)
	return err == nil
}
