package lock

import (
	"errors"
	"io/fs"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/name"
)

// ReaderPrefix begins the names of readers' locks, read.NAME.PID, and of the
// empty file read.NAME, which says that there may be some.
const ReaderPrefix = "read."

// ReaderFile names the lock of the process pid that reads the atom NAME.
func ReaderFile(files string, pid int) string { return name.OneOf(ReaderPrefix, files, pid) }

// IsReader tells whether this is the name of a reader's lock, and of which atom: a
// NAME has four parts.
func IsReader(file string) (files string, is bool) {
	files, _, is = name.NumberOf(ReaderPrefix, file)
	return files, is && strings.Count(files, ".") == 3
}

// Reader opens the lock of a reader by the name of its file; fs.ErrNotExist where
// there is none.
func (d *Dir) Reader(file string) (*Active, error) { return d.active(file) }

// MarkRead says that the atom NAME may have readers from now on.
func (d *Dir) MarkRead(name string) error {
	fd, err := openat(d.fd, ReaderPrefix+name, unix.O_WRONLY|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return d.wrap(ReaderPrefix+name, err)
	}
	defer unix.Close(fd)
	return d.wrap(ReaderPrefix+name, retry(func() error { return unix.Fchmod(fd, 0o600) })) // whatever the umask
}

// markWait is how long the mark is waited for: it is held for a few system calls.
const markWait = 200 * time.Millisecond

// Marked does what changes the last lock of the atom NAME. Readers do so without
// the active lock, so they take turns at the mark, which is never removed: else
// one that keeps the mtime it has read would undo the other's stamp. Where a
// holder is stopped it goes on without: a stamp is worth more than a turn.
func (d *Dir) Marked(name string, do func() error) error {
	f, err := d.openFile(ReaderPrefix+name, unix.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		return do() // it has never had readers
	}
	if err != nil {
		return errors.Join(err, do())
	}
	defer f.Close()
	_, err = f.flock(markWait)
	return errors.Join(err, do())
}

// Readers returns the readers' locks of the atom NAME, for Reader. The directory is
// listed only where MarkRead was called before.
func (d *Dir) Readers(files string) ([]string, error) {
	var st unix.Stat_t
	err := retry(func() error { return unix.Fstatat(d.fd, ReaderPrefix+files, &st, unix.AT_SYMLINK_NOFOLLOW) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, d.wrap(ReaderPrefix+files, err)
	}
	return d.readers(func(of string) bool { return of == files })
}

// ReadersIn returns the readers' locks of all atoms whose names begin with prefix.
func (d *Dir) ReadersIn(prefix string) ([]string, error) {
	return d.readers(func(of string) bool { return strings.HasPrefix(of, prefix) })
}

func (d *Dir) readers(wanted func(files string) bool) ([]string, error) {
	all, err := d.Names("")
	readers := all[:0]
	for _, file := range all {
		if files, is := IsReader(file); is && wanted(files) {
			readers = append(readers, file)
		}
	}
	return readers, err
}
