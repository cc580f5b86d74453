package lockfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/sysfile"
)

// mostLinks is how many links a path may lead through, as for the kernel
// (path_resolution(7)).
const mostLinks = 40

// checkWay makes sure that only root and this user can lead the path
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
	if err := lookAbove(at); err != nil {
		return openFailed(path, err)
	}
	for links := 0; len(rest) > 1; {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		st, err := lstat(next)
		if err != nil {
			return openFailed(path, err)
		}
		if uint32(st.Mode)&unix.S_IFMT != unix.S_IFLNK {
			if err := checkAbove(next, &st); err != nil {
				return openFailed(path, err)
			}
			at = next
			continue
		}
		target, err := os.Readlink(next)
		if links++; err == nil && links > mostLinks {
			err = unix.ELOOP
		}
		if err != nil {
			return fault.Wrap(next, err)
		}
		if !trusted(&st) {
			return fault.New(fault.NotPermitted, next, "is a link of another user's on the way to the lock directory")
		}
		from, more := beginning(target)
		if filepath.IsAbs(target) {
			at = from
			if err := lookAbove(at); err != nil {
				return openFailed(path, err)
			}
		}
		rest = append(more, rest...)
	}
	return nil
}

// lookAbove is checkAbove for where a path begins.
func lookAbove(at string) error {
	st, err := lstat(at)
	if err != nil {
		return err
	}
	return checkAbove(at, &st)
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
func checkAbove(path string, st *unix.Stat_t) error {
	mode := uint32(st.Mode)
	switch {
	case mode&unix.S_IFMT != unix.S_IFDIR:
		return unix.ENOTDIR
	case !trusted(st):
		return fault.New(fault.NotPermitted, path, "is above the lock directory and belongs to another user")
	case mode&unix.S_ISVTX != 0:
	case mode&0o002 != 0, mode&0o020 != 0 && !oursAlone(path, st):
		return fault.New(fault.NotPermitted, path, "is above the lock directory and writable by others ("+remedy(mode, path)+")")
	}
	return nil
}

// oursAlone tells whether a directory that its group may write is this user's alone: the
// group of a user without others in it may write all of the user's files where the umask is
// 002. An access control list may name others, and shows in the group's rights too.
func oursAlone(path string, st *unix.Stat_t) bool {
	return (st.Gid == 0 || int(st.Uid) == os.Geteuid() && int(st.Gid) == os.Getegid()) && !hasACL(path)
}

func lstat(path string) (st unix.Stat_t, err error) {
	err = sysfile.Lstatat(unix.AT_FDCWD, path, &st)
	if err != nil {
		err = &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return st, err
}

// trusted tells whether the owner may do as he likes: root, this user, or one of
// whom a user namespace shows no more than that he is outside.
func trusted(st *unix.Stat_t) bool { return sysfile.IsOurs(st) || isOutside(st.Uid) }
