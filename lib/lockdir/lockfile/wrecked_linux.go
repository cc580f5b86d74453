package lockfile

import (
	"bytes"
	"slices"

	"golang.org/x/sys/unix"

	"adlock/lib/process"
	"adlock/lib/sysfile"
)

// wrecked tells whether damaged content is what a loss of power leaves: zeros, or a record that is
// cut short, of before this boot. A whole record of another version is not. No owner of it can live,
// as the file system is of this machine alone.
func (a *Active) wrecked(content []byte) bool {
	cut := !bytes.Contains(content, []byte("\nend=\n")) || bytes.IndexByte(content, 0) >= 0
	return cut && process.BeforeBoot(a.modified()) && a.isLocal()
}

// local are the file systems whose files only this machine can write. Any other may be shared: what
// the layers of an overlay are is not shown.
var local = []int64{
	unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC,
	unix.BCACHEFS_SUPER_MAGIC, unix.NILFS_SUPER_MAGIC, unix.REISERFS_SUPER_MAGIC,
	0x2fc12fc1, // ZFS
	0x3153464a, // JFS
}

func (a *Active) isLocal() bool {
	var st unix.Statfs_t
	err := sysfile.Retry(func() error { return unix.Fstatfs(a.fd, &st) })
	return err == nil && slices.Contains(local, int64(uint32(st.Type)))
}
