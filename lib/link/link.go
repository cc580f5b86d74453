// Package link finds where a symbolic link leads, for a file that is to replace the link's target. It is not in
// package way, which must not initialise path/filepath before the watchdog starts (cmd/adlock-locksmith/early).
package link

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/way"
)

// Follow returns the path of the file that `> path` would write: replacing that file replaces the content of
// path. If path is a link, the result is the link's last target, which need not exist. Follow first asks the
// kernel whether the link may be followed (fs.protected_symlinks). It refuses a link that leads to an open file, as
// /dev/stdout does. Such a file may have no path, and the process that has it open would go on writing into it after
// it was replaced.
func Follow(path string) (string, error) {
	there, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if to, err := os.Readlink(path); err != nil || to == "" {
		return path, nil
	}
	end, err := lastOf(path)
	if err != nil {
		return "", err
	}
	if found, err := os.Lstat(end); there != nil && (err != nil || !os.SameFile(found, there)) {
		return "", errOpen(path)
	}
	return end, nil
}

func errOpen(path string) error {
	return fault.New(fault.CannotCreate, path, "is an open file, and cannot be replaced: want the file's own name")
}

// lastOf follows links to the last target, and returns its path, with the links of its directory resolved.
func lastOf(path string) (string, error) {
	asked := path
	for range way.MostLinks {
		dir, name := filepath.Split(path)
		if dir == "" {
			dir = "."
		}
		dir, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return "", err
		}
		path = dir + "/" + name
		to, err := os.Readlink(path)
		if err != nil {
			return path, nil
		}
		if strings.HasPrefix(path, "/proc/") {
			return "", errOpen(asked)
		}
		if path = to; !filepath.IsAbs(to) {
			path = dir + "/" + to
		}
	}
	return "", &fs.PathError{Op: "follow", Path: path, Err: unix.ELOOP}
}
