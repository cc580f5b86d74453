package lock

import (
	"errors"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Active is an active lock as it was found: a view of one inode, which may have
// lost its name since. Whoever changes it takes its Guard first.
type Active struct {
	file
	Record   Record
	Appended Appended
	Content  Content
	held     bool // the guard
}

// Active opens the active lock lock.NAME; fs.ErrNotExist where the atom is free.
func (d *Dir) Active(name string) (*Active, error) { return d.active(ActivePrefix + name) }

// Actives returns the names of all active locks that begin with prefix.
func (d *Dir) Actives(prefix string) ([]string, error) {
	names, err := d.Names(ActivePrefix + prefix)
	for i := range names {
		names[i] = prefix + names[i]
	}
	return names, err
}

func (d *Dir) active(file string) (*Active, error) {
	// O_RDWR: NFS makes of flock a byte-range lock, which needs it (flock(2)).
	f, err := d.openFile(file, unix.O_RDWR|unix.O_APPEND)
	if err != nil {
		return nil, err
	}
	a := &Active{file: *f}
	if err := a.load(); err != nil {
		f.Close()
		return nil, err
	}
	return a, nil
}

func (a *Active) load() error {
	content, err := a.read()
	if errors.Is(err, errTooLarge) { // no record: a person may clear it
		a.Record, a.Appended, a.Content = Record{}, Appended{}, Damaged
		return nil
	}
	if err != nil {
		return err
	}
	a.Record, a.Appended, a.Content = parse(content)
	return nil
}

// ErrGuarded says that another process is changing the lock just now.
var ErrGuarded = errors.New("another process is changing the lock")

// ErrLost says that the name has another file by now, or none, or that the
// content names another acquisition.
var ErrLost = errors.New("the lock has another owner")

// Guard takes flock(2) on the active lock's own inode, waiting at most wait
// (else ErrGuarded), and makes sure that the lock is still in place with the
// token it was read with (else ErrLost). Every change of an active lock happens
// under it, so what was seen stays true until Close.
//
// A guard on the last lock, or a removal without one, was shown unsound: a
// newcomer that verified, then stalled, then unlinked would remove a fresh lock.
func (a *Active) Guard(wait time.Duration) error {
	if !guarded {
		return nil
	}
	got, err := a.flock(wait)
	if err != nil {
		return err
	}
	if !got {
		return ErrGuarded
	}
	a.held = true
	mine, err := a.named()
	if err != nil {
		return err
	}
	seen := a.Record.Token
	if !mine {
		return ErrLost
	}
	if err := a.stat(); err != nil {
		return err
	}
	if err := a.load(); err != nil {
		return err
	}
	if a.Record.Token != seen {
		return ErrLost
	}
	return nil
}

// Remove unlinks the lock. Only under its Guard.
func (a *Active) Remove() error {
	return a.wrap(retry(func() error { return unix.Unlinkat(a.dir.fd, a.name, 0) }))
}

// Modified is the lock's mtime: when it was put in place.
func (a *Active) Modified() time.Time { return a.modified() }

// UID is the owner of the file: only this user's processes are condemned by it.
func (a *Active) UID() int { return int(a.st.Uid) }

// Name is NAME of lock.NAME; of a reader's lock, the whole name.
func (a *Active) Name() string { return strings.TrimPrefix(a.name, ActivePrefix) }

// Path is the lock's path, for messages.
func (a *Active) Path() string { return a.dir.Path(a.name) }

// Close lets go of the guard, where that is held, and of the lock's file. The
// guard goes by itself: until its exec, a child that another thread forks just
// now has a copy of the descriptor, which would hold it on.
func (a *Active) Close() error {
	var err error
	if a.held {
		err = a.wrap(retry(func() error { return unix.Flock(a.fd, unix.LOCK_UN) }))
	}
	return errors.Join(err, a.file.Close())
}
