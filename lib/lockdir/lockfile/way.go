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

// mostLinks is how many symbolic links a path may contain, as in the kernel (path_resolution(7)).
const mostLinks = 40

// checkWay makes sure that only root and this user can redirect the path, by putting another
// directory or link in the place of one on its way: what sshd's StrictModes does, for links too.
// /tmp is accepted, as its sticky bit keeps other users from replacing files that are not theirs.
// Dir.check checks the directory at the end.
//
// checkWay goes from the root down, so only root or this user can change what it has checked: it
// may use names, and the path may be opened by name later. If the path does not exist, the error
// is fs.ErrNotExist, and the part that exists is safe.
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

// lookAbove is checkAbove for the beginning of a path.
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

// checkAbove is Dir.check for a directory on the way.
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

// oursAlone tells whether a directory that its group may write is this user's alone. With umask
// 002 a user's private group may write all of that user's files. An access control list may name
// other users, and shows in the group bits too.
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

// trusted tells whether the file's owner may redirect the path: root, this user, or a user
// outside this user namespace.
func trusted(st *unix.Stat_t) bool { return sysfile.IsOurs(st) || isOutside(st.Uid) }
