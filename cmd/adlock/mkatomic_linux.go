package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// keepACL gives the new file the old one's access control list, without which the group's bits are the list's mask.
func keepACL(file *os.File, old string) error {
	const access = "system.posix_acl_access"
	list := make([]byte, 1<<16)
	n, err := unix.Getxattr(old, access, list)
	if err != nil { // it has none, so the new one may not have the directory's either
		_ = unix.Fremovexattr(int(file.Fd()), access)
		return nil
	}
	return unix.Fsetxattr(int(file.Fd()), access, list[:n], 0)
}
