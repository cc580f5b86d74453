package sysfile

import (
	"slices"

	"golang.org/x/sys/unix"
)

var network = []int64{unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.CEPH_SUPER_MAGIC, unix.AFS_SUPER_MAGIC, unix.V9FS_MAGIC}

// IsNetwork reports whether an open file is on another machine, as far as its file system shows it.
func IsNetwork(fd int) bool { return isOn(fd, network) }

func isOn(fd int, kinds []int64) bool {
	var st unix.Statfs_t
	err := Retry(func() error { return unix.Fstatfs(fd, &st) })
	return err == nil && slices.Contains(kinds, int64(uint32(st.Type)))
}
