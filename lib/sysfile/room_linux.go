package sysfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// NoRoom is why no file can be made in a directory, as far as its file system tells without
// being written to: it is full or read-only. nil: that is not known. Root has the blocks too
// that are kept for it.
func NoRoom(dir string) error {
	var st unix.Statfs_t
	if Retry(func() error { return unix.Statfs(dir, &st) }) != nil {
		return nil
	}
	blocks := st.Bavail
	if os.Geteuid() == 0 {
		blocks = st.Bfree
	}
	switch {
	case st.Flags&unix.ST_RDONLY != 0:
		return unix.EROFS
	case st.Blocks > 0 && blocks == 0, st.Files > 0 && st.Ffree == 0: // 0: not counted
		return unix.ENOSPC
	}
	return nil
}
