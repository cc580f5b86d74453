package lock

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// nameless opens a file without a name, or returns nil where the file system
// has none (FUSE: EOPNOTSUPP; kernels that do not know the flag: EISDIR) or
// /proc, through which it gets its name, is not there.
func (d *Dir) nameless() (*Draft, error) {
	fd, err := openat(d.fd, ".", unix.O_TMPFILE|unix.O_RDWR, 0o600)
	switch {
	case errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENOENT):
		return nil, nil
	case err != nil:
		return nil, cannotCreate(d.path, err)
	}
	draft := &Draft{file: file{dir: d, name: "new lock", fd: fd}}
	if unix.Access(draft.link(), unix.F_OK) != nil {
		unix.Close(fd)
		return nil, nil
	}
	return draft, nil
}

func (dr *Draft) linkNameless(name string) error {
	return retry(func() error {
		return unix.Linkat(unix.AT_FDCWD, dr.link(), dr.dir.fd, name, unix.AT_SYMLINK_FOLLOW)
	})
}

func (dr *Draft) link() string { return "/proc/self/fd/" + strconv.Itoa(dr.fd) }
