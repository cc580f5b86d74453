// Package way follows the path to a file, one directory or link at a time. It checks that only root and this user can
// redirect the path: no other user can replace a directory or link above the file. Users without an id in this user
// namespace count as root. So do the members of root's group and of this user's private group (othersMayWrite).
package way

import (
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/sysfile"
)

// MostLinks is how many symbolic links a path may contain, as in the kernel (path_resolution(7)).
const MostLinks = 40

// Check makes sure that only root and this user can redirect the path by replacing a directory or link on it,
// as sshd's StrictModes does. /tmp is accepted, because its sticky bit keeps other users from replacing files
// that are not theirs. The file at the end of the path (in errors: what) is left to the caller. A
// refusal is a *fault.Error (77); other errors are the system's. advice returns what this user can do about a
// directory that only its owner could mend; it may be nil.
//
// Check goes down from the root, or from the working directory if the path is relative, so only root or this
// user can change what it has checked. If a directory or link above the file does not exist, the error is
// fs.ErrNotExist, and the part that exists is safe.
func Check(whole, what string, advice func() string) error {
	_, err := walk(whole, func(at string, st *unix.Stat_t) error { return checkAbove(at, what, advice, st) })
	return err
}

// CheckOwners is Check, but accepts root's directories to which a group may write: on some systems /var/log is one.
func CheckOwners(whole, what string, advice func() string) error {
	_, err := walk(whole, func(at string, st *unix.Stat_t) error {
		if st.Uid == 0 && st.Mode&0o002 == 0 && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			return nil
		}
		return checkAbove(at, what, advice, st)
	})
	return err
}

// walk returns whole without links above its last name. It calls check before it follows a directory or link.
func walk(whole string, check func(at string, st *unix.Stat_t) error) (plain string, err error) {
	lookAbove := func(at string) error {
		st, err := lstat(at)
		if err != nil {
			return err
		}
		return check(at, &st)
	}
	at, rest := beginning(whole)
	if err := lookAbove(at); err != nil {
		return "", err
	}
	for links := 0; len(rest) > 1; {
		next := path.Join(at, rest[0])
		rest = rest[1:]
		st, err := lstat(next)
		if err == nil {
			err = check(next, &st)
		}
		if err != nil {
			return "", err
		}
		if uint32(st.Mode)&unix.S_IFMT != unix.S_IFLNK {
			at = next
			continue
		}
		target, err := os.Readlink(next)
		if links++; err == nil && links > MostLinks {
			err = unix.ELOOP
		}
		if err != nil {
			return "", fault.Wrap(next, err)
		}
		from, more := beginning(target)
		if path.IsAbs(target) {
			at = from
			if err := lookAbove(at); err != nil {
				return "", err
			}
		}
		rest = append(more, rest...)
	}
	return path.Join(at, strings.Join(rest, "/")), nil
}

func beginning(whole string) (at string, names []string) {
	at = "."
	if path.IsAbs(whole) {
		at = "/"
	}
	return at, strings.FieldsFunc(whole, func(c rune) bool { return c == '/' })
}

func checkAbove(path, what string, advice func() string, st *unix.Stat_t) error {
	mode, me := uint32(st.Mode), os.Geteuid()
	if advice == nil {
		advice = func() string { return "only its owner can mend that" }
	}
	switch isLink := mode&unix.S_IFMT == unix.S_IFLNK; {
	case isLink && !trusted(st):
		return fault.New(fault.NotPermitted, path, "is a link of another user's on the way to the "+what)
	case isLink:
	case mode&unix.S_IFMT != unix.S_IFDIR:
		return unix.ENOTDIR
	case !trusted(st):
		if me == 0 {
			advice = func() string { return "run as that user: " + sysfile.AsUser(int(st.Uid)) }
		}
		return fault.New(fault.NotPermitted, path, "is above the "+what+", and another user's ("+advice()+")")
	case mode&unix.S_ISVTX != 0:
	case othersMayWrite(path, st):
		if me == 0 || me == int(st.Uid) {
			advice = func() string { return "chmod go-w " + fault.Quoted(path) }
		}
		return fault.New(fault.NotPermitted, path, "is above the "+what+" and writable by others ("+advice()+")")
	}
	return nil
}

// othersMayWrite reports whether the mode lets users other than the owner and root write to the file or
// directory: all of them, or a group that may have other members. Check the owner first.
func othersMayWrite(path string, st *unix.Stat_t) bool {
	mode := uint32(st.Mode)
	return mode&0o002 != 0 || mode&0o020 != 0 && !oursAlone(path, st)
}

// oursAlone reports whether the file's group counts as having no other members: it is root's, or this user's
// private group (umask 002). An access control list may name other users, and shows in the group bits too.
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

// trusted reports whether the owner is root, this user, or a user outside this user namespace.
func trusted(st *unix.Stat_t) bool { return sysfile.IsOurs(st) || isOutside(st.Uid) }
