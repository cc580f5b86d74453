package lockfile

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/sysfile"
)

// OpenToTry opens the lock directory at path or, if that is missing, its nearest ancestor that exists; there
// is false for an ancestor. The caller makes temporary files in d to find out whether locks can be kept.
func OpenToTry(path string) (d *Dir, there bool, err error) {
	d, err = Open(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return d, true, err
	}
	if err := MayMake(path); err != nil {
		return nil, false, err
	}
	d, err = openAbove(config.Trim(path))
	return d, false, err
}

func openAbove(path string) (*Dir, error) {
	above, _ := config.Split(path)
	for ; above != "/"; above, _ = config.Split(above) {
		if _, err := os.Lstat(above); err == nil { // a dangling link counts too
			break
		}
	}
	if err := unix.Faccessat(unix.AT_FDCWD, above, unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		return nil, cannotMake(path, &fs.PathError{Op: "write to " + above, Path: path, Err: err})
	}
	fd, err := sysfile.Open(above, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, fault.Wrap(above, err)
	}
	return &Dir{path: above, fd: fd, uid: os.Geteuid(), me: os.Geteuid()}, nil
}
