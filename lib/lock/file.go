package lock

import (
	"errors"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/exit"
)

// maxContent bounds what is read of a lock. Records are small, but earlier versions
// wrote whole command lines into them: of 6 MiB at most (execve(2)), and four times
// that where every byte was escaped.
const maxContent = 32 << 20

var errTooLarge = errors.New("is too large to be a lock")

// file is one open file of a lock directory.
type file struct {
	dir  *Dir
	name string
	fd   int
	st   unix.Stat_t
}

func (f *file) Close() error { return unix.Close(f.fd) }

func (f *file) stat() error {
	return f.wrap(retry(func() error { return unix.Fstat(f.fd, &f.st) }))
}

func (f *file) wrap(err error) error { return exit.Wrap(f.dir.Path(f.name), err) }

func (f *file) modified() time.Time { return time.Unix(f.st.Mtim.Unix()) }

func (f *file) read() ([]byte, error) {
	if f.st.Size > maxContent {
		return nil, f.tooLarge()
	}
	content := make([]byte, 0, f.st.Size+512)
	for {
		room := content[len(content):cap(content)]
		var n int
		err := retry(func() (err error) {
			n, err = unix.Pread(f.fd, room, int64(len(content)))
			return err
		})
		if err != nil {
			return nil, f.wrap(err)
		}
		if n == 0 {
			return content, nil
		}
		content = content[:len(content)+n]
		if len(content) == cap(content) {
			if len(content) > maxContent {
				return nil, f.tooLarge()
			}
			content = append(content, make([]byte, len(content))...)[:len(content)]
		}
	}
}

func (f *file) tooLarge() error {
	return &exit.Error{Code: exit.IO, Object: f.dir.Path(f.name), Err: errTooLarge}
}

// write puts content into a new file with one write; a short one is an error:
// the rest would find no room either.
func (f *file) write(content []byte) error {
	var n int
	err := retry(func() (err error) {
		n, err = unix.Write(f.fd, content)
		return err
	})
	if err == nil && n < len(content) {
		return &exit.Error{Code: exit.IO, Object: f.dir.Path(f.name), Err: io.ErrShortWrite}
	}
	return f.wrap(err)
}

// touch sets the mtime to the file system's own idea of now (UTIME_NOW), so
// that the clock of a file server does not matter.
func (f *file) touch() error {
	if err := retry(func() error { return touch(f.fd) }); err != nil {
		return f.wrap(err)
	}
	return f.stat()
}

// named reports whether the directory still has this very file under its name.
func (f *file) named() (bool, error) {
	var st unix.Stat_t
	err := retry(func() error { return unix.Fstatat(f.dir.fd, f.name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	return err == nil && st.Ino == f.st.Ino && st.Dev == f.st.Dev, f.wrap(err)
}

// flockPoll is how often a taken guard is tried again: flock(2) has no timeout.
const flockPoll = 5 * time.Millisecond

// flock takes the exclusive lock of the file's inode, waiting at most wait; it
// reports whether it got it. Closing the file lets go.
func (f *file) flock(wait time.Duration) (bool, error) {
	for deadline := time.Now().Add(wait); ; time.Sleep(flockPoll) {
		err := retry(func() error { return unix.Flock(f.fd, unix.LOCK_EX|unix.LOCK_NB) })
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return err == nil, f.wrap(err)
		}
		if !time.Now().Before(deadline) {
			return false, nil
		}
	}
}
