package sysfile

import "golang.org/x/sys/unix"

// Fstat is fstat(2), again after a signal.
func Fstat(fd int, into *unix.Stat_t) error {
	return Retry(func() error { return unix.Fstat(fd, into) })
}

// Lstatat tells what the name is in the open directory dir, again after a
// signal: a link is itself and not what it leads to. From the working directory
// where dir is unix.AT_FDCWD.
func Lstatat(dir int, name string, into *unix.Stat_t) error {
	return Retry(func() error { return unix.Fstatat(dir, name, into, unix.AT_SYMLINK_NOFOLLOW) })
}

// IsOurs reports whether root or the effective user owns the file of st.
func IsOurs(st *unix.Stat_t) bool { return st.Uid == 0 || int(st.Uid) == unix.Geteuid() }

// Fchmod is fchmod(2), again after a signal.
func Fchmod(fd int, mode uint32) error {
	return Retry(func() error { return unix.Fchmod(fd, mode) })
}
