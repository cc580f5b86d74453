package lockfile

import (
	"slices"

	"golang.org/x/sys/unix"

	"adlock/lib/sysfile"
)

// local lists file systems that only one machine can write. On others, and if statfs fails, isLocal is false.
var local = []int64{
	unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC,
	unix.BCACHEFS_SUPER_MAGIC, unix.NILFS_SUPER_MAGIC, unix.REISERFS_SUPER_MAGIC,
	0x2fc12fc1, // ZFS
	0x3153464a, // JFS
}

func isLocal(fd int) bool {
	var st unix.Statfs_t
	_ = sysfile.Retry(func() error { return unix.Fstatfs(fd, &st) })
	return slices.Contains(local, int64(uint32(st.Type)))
}
