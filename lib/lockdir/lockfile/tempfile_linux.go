package lockfile

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"

	"adlock/lib/sysfile"
)

// nameless makes a file without a name. It returns nil if the file system cannot (FUSE: EOPNOTSUPP; older
// kernels: EISDIR), or if /proc, through which the file would get its name, is missing.
func (d *Dir) nameless() (*TempFile, error) {
	fd, err := sysfile.Openat(d.fd, ".", unix.O_TMPFILE|unix.O_RDWR, 0o600)
	switch {
	case errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENOENT):
		return nil, nil
	case err != nil:
		return nil, cannotCreate(d.path, err)
	}
	temp := &TempFile{file: file{dir: d, fd: fd}}
	if unix.Access(temp.link(), unix.F_OK) != nil {
		unix.Close(fd)
		return nil, nil
	}
	return temp, nil
}

func (t *TempFile) linkNameless(name string) error {
	return sysfile.Retry(func() error {
		return unix.Linkat(unix.AT_FDCWD, t.link(), t.dir.fd, name, unix.AT_SYMLINK_FOLLOW)
	})
}

func (t *TempFile) link() string { return "/proc/self/fd/" + strconv.Itoa(t.fd) }
