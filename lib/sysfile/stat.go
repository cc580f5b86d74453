package sysfile

import "golang.org/x/sys/unix"

// Fstat is fstat(2), retried after EINTR.
func Fstat(fd int, into *unix.Stat_t) error {
	return Retry(func() error { return unix.Fstat(fd, into) })
}

// Lstatat is fstatat(2) without following a link, retried after EINTR.
func Lstatat(dir int, name string, into *unix.Stat_t) error {
	return Retry(func() error { return unix.Fstatat(dir, name, into, unix.AT_SYMLINK_NOFOLLOW) })
}

// IsOurs reports whether root or the effective user owns the file of st.
func IsOurs(st *unix.Stat_t) bool { return st.Uid == 0 || int(st.Uid) == unix.Geteuid() }

// Fchmod is fchmod(2), retried after EINTR.
func Fchmod(fd int, mode uint32) error {
	return Retry(func() error { return unix.Fchmod(fd, mode) })
}

func SameFile(a, b *unix.Stat_t) bool { return a.Dev == b.Dev && a.Ino == b.Ino }
