//go:build linux || darwin || freebsd

package sysfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// NoRoom returns the reason why no file can be made in a directory, EROFS or ENOSPC; nil if none is
// known. For root the reserved blocks count as free.
func NoRoom(dir string) error {
	var st unix.Statfs_t
	if Retry(func() error { return unix.Statfs(dir, &st) }) != nil {
		return nil
	}
	const readOnly = 1 // ST_RDONLY of Linux, MNT_RDONLY of the BSDs
	switch {
	case st.Flags&readOnly != 0:
		return unix.EROFS
	case isFull(&st), st.Files > 0 && st.Ffree == 0:
		return unix.ENOSPC
	}
	return nil
}

// NoRoomIn returns the reason why an open file cannot grow, ENOSPC or EFBIG; nil if none is known.
func NoRoomIn(fd int) error {
	var st unix.Stat_t
	var limit unix.Rlimit
	if Fstat(fd, &st) == nil && unix.Getrlimit(unix.RLIMIT_FSIZE, &limit) == nil && uint64(st.Size) >= uint64(limit.Cur) {
		return unix.EFBIG
	}
	var fs unix.Statfs_t
	if Retry(func() error { return unix.Fstatfs(fd, &fs) }) == nil && isFull(&fs) {
		return unix.ENOSPC
	}
	return nil
}

func isFull(st *unix.Statfs_t) bool {
	blocks := int64(st.Bavail)
	if os.Geteuid() == 0 {
		blocks = int64(st.Bfree)
	}
	return st.Blocks > 0 && blocks <= 0 // a total of 0 means that the file system counts no blocks
}
