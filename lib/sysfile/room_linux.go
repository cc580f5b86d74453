package sysfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// NoRoom returns the reason why no file can be made in a directory: EROFS if its file system is
// read-only, ENOSPC if it is full, nil if neither is known. It writes nothing. For root the
// reserved blocks count as free.
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
	case st.Blocks > 0 && blocks == 0, st.Files > 0 && st.Ffree == 0: // a total of 0: the file system does not count them
		return unix.ENOSPC
	}
	return nil
}
