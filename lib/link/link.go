// Package link tells where a link leads, for a file that is to be put in place.
package link

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Follow returns the path at which a file is to be put in place that is to be the
// content of path, as `>` writes: where path is a link, that to which it leads in the
// end, there or not, so that the link stays. The kernel is asked first whether the link
// may be followed (fs.protected_symlinks); and what comes out must be that same file,
// or else the link leads to where no path does (/dev/stdout).
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
		return "", &fs.PathError{Op: "follow", Path: path, Err: unix.ENOTSUP}
	}
	return end, nil
}

// lastOf follows links until there is none, in a directory whose own path has none.
func lastOf(path string) (string, error) {
	for range 40 { // as the kernel
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
		if path = to; !filepath.IsAbs(to) {
			path = dir + "/" + to
		}
	}
	return "", &fs.PathError{Op: "follow", Path: path, Err: unix.ELOOP}
}
