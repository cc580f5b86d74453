package lock

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"adlock/lib/exit"
)

// mostLinks is how many links a path may lead through, as for the kernel
// (path_resolution(7)).
const mostLinks = 40

// checkWay makes sure that nobody but root and this user can lead the path
// elsewhere, by another directory or link in the place of one on its way: what
// sshd's StrictModes does, and for links too. /tmp serves, as its sticky bit
// keeps others from what is not theirs. The directory at the end is for Dir.check.
//
// It goes from the root down, and what it has seen only root or this user can
// change; so it may look at names, and the path may be opened by its name later.
// Of a path that leads nowhere the error is fs.ErrNotExist, and what is there of
// it is safe.
func checkWay(path string) error {
	at, rest := beginning(path)
	for links := 0; ; {
		if err := checkAbove(at); err != nil {
			return openFailed(path, err)
		}
		if len(rest) <= 1 {
			return nil
		}
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		st, err := lstat(next)
		if err != nil {
			return openFailed(path, err)
		}
		if uint32(st.Mode)&unix.S_IFMT != unix.S_IFLNK {
			at = next
			continue
		}
		target, err := os.Readlink(next)
		if links++; err == nil && links > mostLinks {
			err = unix.ELOOP
		}
		if err != nil {
			return exit.Wrap(next, err)
		}
		if !trusted(st.Uid) {
			return exit.New(exit.NotPermitted, next, "is a link of another user's on the way to the lock directory")
		}
		from, more := beginning(target)
		if filepath.IsAbs(target) {
			at = from
		}
		rest = append(more, rest...)
	}
}

// beginning cuts a path into where it begins and the names that follow.
func beginning(path string) (at string, names []string) {
	at = "."
	if filepath.IsAbs(path) {
		at = "/"
	}
	return at, strings.FieldsFunc(path, func(c rune) bool { return c == '/' })
}

// checkAbove is check for a directory that is on the way.
func checkAbove(path string) error {
	st, err := lstat(path)
	if err != nil {
		return err
	}
	mode := uint32(st.Mode)
	// The group of a user without others in it may write everything of his where
	// the umask is 002.
	oursAlone := st.Gid == 0 || int(st.Uid) == os.Geteuid() && int(st.Gid) == os.Getegid()
	switch {
	case mode&unix.S_IFMT != unix.S_IFDIR:
		return unix.ENOTDIR
	case !trusted(st.Uid):
		return exit.New(exit.NotPermitted, path, "is above the lock directory and belongs to another user")
	case mode&unix.S_ISVTX != 0:
	case mode&0o002 != 0, mode&0o020 != 0 && !oursAlone:
		return exit.New(exit.NotPermitted, path, "is above the lock directory and writable by others")
	}
	return nil
}

func lstat(path string) (st unix.Stat_t, err error) {
	err = retry(func() error { return unix.Lstat(path, &st) })
	if err != nil {
		err = &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return st, err
}

// trusted tells whether the owner may do as he likes: root, this user, or one of
// whom a user namespace shows no more than that he is outside.
func trusted(uid uint32) bool { return uid == 0 || int(uid) == os.Geteuid() || isOutside(uid) }
