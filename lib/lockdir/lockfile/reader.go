package lockfile

import (
	"errors"
	"io/fs"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/process"
	"adlock/lib/sysfile"
)

// MarkRead records that the atom NAME may have readers from now on.
func (d *Dir) MarkRead(name atom.Name) error {
	fd, err := sysfile.Openat(d.fd, name.ReadersMark(), unix.O_WRONLY|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return d.wrap(name.ReadersMark(), err)
	}
	defer unix.Close(fd)
	return d.wrap(name.ReadersMark(), sysfile.Fchmod(fd, 0o600)) // whatever the umask
}

const markWait = 200 * time.Millisecond

// Marked calls do, which changes the last lock, under a lock on the readers' mark. Readers change the last lock
// without the active lock, and a reader that writes back the mtime it has read would undo another one's stamp.
// If the mark cannot be locked, or not in time, do is called all the same: a missing stamp would be worse.
func (d *Dir) Marked(name atom.Name, do func() error) error {
	f, err := d.openFile(name.ReadersMark(), unix.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		return do() // the atom has never had readers
	}
	if err != nil {
		return errors.Join(err, do())
	}
	defer f.Close()
	_, err = f.flock(markWait)
	return errors.Join(err, do())
}

// Readers returns the readers' locks of the atom. It lists the directory only if MarkRead was ever called.
func (d *Dir) Readers(name atom.Name) ([]atom.File, error) {
	var st unix.Stat_t
	err := sysfile.Lstatat(d.fd, name.ReadersMark(), &st)
	if err != nil {
		return nil, d.wrap(name.ReadersMark(), sysfile.IgnoreMissing(err))
	}
	locks, err := d.Files(atom.ReaderLock)
	return slices.DeleteFunc(locks, func(f atom.File) bool { return f.Name != name }), err
}

// JobsOfReaders returns the jobs of the readers of the atom whose locks can be read.
func (d *Dir) JobsOfReaders(name atom.Name) (jobs []process.Job) {
	readers, _ := d.Readers(name)
	for _, f := range readers {
		if reader, err := d.Lock(f); err == nil {
			jobs = append(jobs, reader.Job())
			reader.Close()
		}
	}
	return jobs
}
