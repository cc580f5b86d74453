package lockfile

import (
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/record"
	"adlock/lib/sysfile"
)

// maxContent bounds how much of a lock is read: a record with what is appended to it is smaller.
const maxContent = 2 * record.Longest

var errTooLarge = errors.New("is too large to be a lock")

type file struct {
	dir  *Dir
	name string
	fd   int
	st   unix.Stat_t
}

func (f *file) Close() error { return unix.Close(f.fd) }

func (f *file) Path() string { return f.dir.Path(f.name) }

func (f *file) stat() error {
	return f.wrap(sysfile.Fstat(f.fd, &f.st))
}

func (f *file) wrap(err error) error { return fault.Wrap(f.Path(), err) }

// Modified returns the mtime: when an active or a reader's lock was put in place, or a last lock stamped.
func (f *file) Modified() time.Time { return time.Unix(f.st.Mtim.Unix()) }

func (f *file) read() ([]byte, error) {
	if f.st.Size > maxContent {
		return nil, f.tooLarge()
	}
	content := make([]byte, 0, f.st.Size+512)
	for {
		room := content[len(content):cap(content)]
		n, err := sysfile.Pread(f.fd, room, int64(len(content)))
		if err != nil {
			return nil, f.wrap(err)
		}
		content = content[:len(content)+n]
		switch {
		case len(content) > maxContent:
			return nil, f.tooLarge()
		// A short read means the end of the file (read(2)), but not on some network file systems.
		case n == 0 || n < len(room) && int64(len(content)) >= f.st.Size:
			return content, nil
		case len(content) == cap(content):
			content = slices.Grow(content, len(content))
		}
	}
}

func (f *file) tooLarge() error {
	return &fault.Error{Kind: fault.IO, Object: f.Path(), Err: errTooLarge}
}

// write writes content in one call. A short write is an error, as there is no room for the rest either.
func (f *file) write(content []byte) error {
	n, err := sysfile.Write(f.fd, content)
	if err == nil && n < len(content) {
		return &fault.Error{Kind: fault.IO, Object: f.Path(), Err: unix.ENOSPC}
	}
	return f.wrap(err)
}

// touch sets the mtime to the file system's current time: a file server's clock may differ from this machine's.
func (f *file) touch() error {
	if err := sysfile.Retry(func() error { return touch(f.fd) }); err != nil {
		return f.wrap(err)
	}
	return f.stat()
}

func (f *file) named() (bool, error) {
	var st unix.Stat_t
	err := sysfile.Lstatat(f.dir.fd, f.name, &st)
	return err == nil && sysfile.SameFile(&st, &f.st), f.wrap(sysfile.IgnoreMissing(err))
}

func (f *file) flock(wait time.Duration) (bool, error) {
	err := sysfile.Flock(f.fd, unix.LOCK_EX, wait)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, f.wrap(err)
}
