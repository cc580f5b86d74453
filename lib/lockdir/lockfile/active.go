package lockfile

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/lib/sysfile"
)

// Active is an active lock as it was found: a view of one inode, which may have
// lost its name since. A process that changes it takes its Guard first.
type Active struct {
	file
	File     atom.File // what it was opened as
	Record   record.Record
	Appended record.Appended
	Content  record.Content
	whole    int64 // bytes of whole lines
	seen     int64 // as many when it was read
	held     bool  // the guard
}

// Active opens the active lock lock.NAME; fs.ErrNotExist where the atom is free.
func (d *Dir) Active(name atom.Name) (*Active, error) {
	return d.Lock(atom.File{Kind: atom.ActiveLock, Name: name})
}

// HasAll reports whether all these files are there. It is false where a file cannot be looked
// at: opening that file tells why.
func (d *Dir) HasAll(files []string) bool {
	var st unix.Stat_t
	return !slices.ContainsFunc(files, func(file string) bool { return sysfile.Lstatat(d.fd, file, &st) != nil })
}

// Lock opens an active lock or that of a reader; fs.ErrNotExist where it is not there.
func (d *Dir) Lock(lock atom.File) (*Active, error) {
	// O_RDWR: NFS makes of flock a byte-range lock, which needs it (flock(2)).
	f, err := d.openFile(lock.String(), unix.O_RDWR|unix.O_APPEND)
	if err != nil {
		return nil, err
	}
	a := &Active{file: *f, File: lock}
	err = a.load()
	if err == nil {
		err = a.believable()
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return a, nil
}

// believable refuses a record that other users could once write to, though none may
// enter the directory now: a group may have, before its rights were taken back, and a
// member that rewrites a lock of root's in place names what root ends. We make none like
// that. (A pid alone condemns no process.)
func (a *Active) believable() error {
	if a.Content == record.Full && lax(&a.st) {
		return a.dir.refuseLax(a.name)
	}
	return nil
}

func (a *Active) load() error {
	content, err := a.read()
	if errors.Is(err, errTooLarge) { // no record: a person may clear it
		a.Record, a.Appended, a.Content = record.Record{}, record.Appended{}, record.Damaged
		a.whole, a.seen = a.st.Size, a.st.Size
		return nil
	}
	if err != nil {
		return err
	}
	a.Record, a.Appended, a.Content = record.ParseAll(content)
	a.whole = int64(bytes.LastIndexByte(content, '\n') + 1)
	a.seen = a.whole
	return nil
}

// SupervisedBy tells whether that very process holds the lock, as the supervisor of a
// job.
func (a *Active) SupervisedBy(id process.Identity) bool {
	return a.Content == record.Full && a.Record.Supervised && a.Record.Owner.Same(id)
}

// Guard takes flock(2) on the active lock's own inode, waiting at most wait
// (else ErrGuarded), and makes sure that the lock is still in place with the
// token it was read with (else ErrLost). Every change of an active lock happens
// under it, so what was seen stays true until Close.
//
// A guard on the last lock, or a removal without one, was shown unsound: a
// newcomer that verified, then stalled, then unlinked would remove a fresh lock.
func (a *Active) Guard(wait time.Duration) error {
	got, err := a.flock(wait)
	if err != nil {
		return err
	}
	if !got {
		return locker.ErrGuarded
	}
	a.held = true
	mine, err := a.named()
	if err != nil {
		return err
	}
	seen := a.Record.Token
	if !mine {
		return locker.ErrLost
	}
	if err := a.stat(); err != nil {
		return err
	}
	if err := a.load(); err != nil {
		return err
	}
	if a.Record.Token != seen {
		return locker.ErrLost
	}
	return nil
}

// Remove unlinks the lock. Only under its Guard.
func (a *Active) Remove() error {
	return a.wrap(sysfile.Unlinkat(a.dir.fd, a.name))
}

// Named tells whether the lock is still in place, also after Close.
func (a *Active) Named() bool { mine, err := a.named(); return mine && err == nil }

// Modified is the lock's mtime: when it was put in place.
func (a *Active) Modified() time.Time { return a.modified() }

// UID is the owner of the file: only this user's processes are condemned by it.
func (a *Active) UID() int { return int(a.st.Uid) }

// Path is the lock's path, for messages.
func (a *Active) Path() string { return a.dir.Path(a.name) }

// Close lets go of the guard, where that is held, and of the lock's file. The
// guard goes by itself: until its exec, a child that another thread forks just
// now has a copy of the descriptor, which would hold it on.
func (a *Active) Close() error {
	var err error
	if a.held {
		err = a.wrap(sysfile.Unlock(a.fd))
	}
	return errors.Join(err, a.file.Close())
}
