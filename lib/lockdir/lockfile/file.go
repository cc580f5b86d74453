package lockfile

import (
	"errors"
	"io"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/sysfile"
)

// maxContent bounds how much of a lock is read. Records are small, but earlier versions wrote
// whole command lines into them: 6 MiB at most (execve(2)), four times that with every byte
// escaped.
const maxContent = 32 << 20

// maxVisited is maxContent in another user's directory, where only records of today's size are
// read.
const maxVisited = 64 << 10

func (d *Dir) maxContent() int {
	if d.visited != nil {
		return maxVisited
	}
	return maxContent
}

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
	return f.wrap(sysfile.Fstat(f.fd, &f.st))
}

func (f *file) wrap(err error) error { return fault.Wrap(f.dir.Path(f.name), err) }

func (f *file) modified() time.Time { return time.Unix(f.st.Mtim.Unix()) }

func (f *file) read() ([]byte, error) {
	most := f.dir.maxContent()
	if f.st.Size > int64(most) {
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
		// A short read is the end (read(2)). On some network file systems a read before the file's
		// size can be short too.
		if n == 0 || n < len(room) && int64(len(content)) >= f.st.Size {
			return content, nil
		}
		if len(content) == cap(content) {
			if len(content) > most {
				return nil, f.tooLarge()
			}
			content = append(content, make([]byte, len(content))...)[:len(content)]
		}
	}
}

func (f *file) tooLarge() error {
	return &fault.Error{Kind: fault.IO, Object: f.dir.Path(f.name), Err: errTooLarge}
}

// write puts content into a new file with one write. A short write is an error: there would be no
// room for the rest either.
func (f *file) write(content []byte) error {
	n, err := sysfile.Write(f.fd, content)
	if err == nil && n < len(content) {
		return &fault.Error{Kind: fault.IO, Object: f.dir.Path(f.name), Err: io.ErrShortWrite}
	}
	return f.wrap(err)
}

// touch sets the mtime to the file system's own now (UTIME_NOW), so that the clock of a file
// server does not matter.
func (f *file) touch() error {
	if err := sysfile.Retry(func() error { return touch(f.fd) }); err != nil {
		return f.wrap(err)
	}
	return f.stat()
}

// named reports whether the directory still has this very file under its name.
func (f *file) named() (bool, error) {
	var st unix.Stat_t
	err := sysfile.Lstatat(f.dir.fd, f.name, &st)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	return err == nil && st.Ino == f.st.Ino && st.Dev == f.st.Dev, f.wrap(err)
}

// flock takes the exclusive lock of the file's inode, waiting at most wait, and reports whether
// it got it. Closing the file unlocks it.
func (f *file) flock(wait time.Duration) (bool, error) {
	err := sysfile.Flock(f.fd, unix.LOCK_EX, wait)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, f.wrap(err)
}
