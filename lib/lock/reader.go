package lock

import (
	"errors"
	"io/fs"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ReaderPrefix begins the names of readers' locks, read.NAME.PID, and of the
// empty file read.NAME, which says that there may be some.
const ReaderPrefix = "read."

// IsReader tells whether this is the name of a reader's lock: it has six parts,
// where NAME has four and a slot's three.
func IsReader(file string) bool {
	name, is := strings.CutPrefix(file, ReaderPrefix)
	return is && isReader(name)
}

// Reader opens the lock of a reader; fs.ErrNotExist where there is none.
func (d *Dir) Reader(name string) (*Active, error) { return d.active(ReaderPrefix + name) }

// MarkRead says that the atom NAME may have readers from now on.
func (d *Dir) MarkRead(name string) error {
	fd, err := openat(d.fd, ReaderPrefix+name, unix.O_WRONLY|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return d.wrap(ReaderPrefix+name, err)
	}
	return unix.Close(fd)
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

// Readers returns the names of the readers' locks of the atom NAME, for Reader.
// The directory is listed only where MarkRead was called before.
func (d *Dir) Readers(name string) ([]string, error) {
	var st unix.Stat_t
	err := retry(func() error { return unix.Fstatat(d.fd, ReaderPrefix+name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, d.wrap(ReaderPrefix+name, err)
	}
	return d.ReadersIn(name + ".")
}

// ReadersIn returns the names of all readers' locks that begin with prefix.
func (d *Dir) ReadersIn(prefix string) ([]string, error) {
	all, err := d.Names(ReaderPrefix + prefix)
	readers := all[:0]
	for _, rest := range all {
		if name := prefix + rest; isReader(name) {
			readers = append(readers, name)
		}
	}
	return readers, err
}

// isReader tells NAME.PID from NAME, which has four parts.
func isReader(name string) bool {
	pid := name[strings.LastIndexByte(name, '.')+1:]
	return strings.Count(name, ".") == 4 && strings.Trim(pid, "0123456789") == ""
}
