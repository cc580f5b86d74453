package lockfile

import (
	"bytes"
	"cmp"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/lib/sysfile"
)

// Active is an active lock or a reader's lock, as it was read: one inode, which may have lost its name since.
type Active struct {
	file
	File     atom.File // the kind and NAME by which it was opened
	Record   record.Record
	Appended record.Appended
	Content  record.Content
	machine  string // the machine id in the record, even if load has removed it from Record
	Wrecked  bool   // a loss of power before this boot has damaged it; Content is then Empty
	whole    int64  // bytes of whole lines
	seen     int64  // the value of whole when the lock was read
	held     bool   // this process holds the guard
	readOnly bool   // the file system was read-only when the lock was opened
}

// Active opens lock.NAME, the active lock of an atom or a slot; fs.ErrNotExist if there is none.
func (d *Dir) Active(name atom.Name) (*Active, error) {
	return d.Lock(atom.File{Kind: atom.ActiveLock, Name: name})
}

// Lock opens an active lock or a reader's; fs.ErrNotExist if it is missing.
func (d *Dir) Lock(lock atom.File) (*Active, error) {
	// O_RDWR is for NFS, where flock is a byte-range lock, which needs write access (flock(2)).
	f, err := d.openFile(lock.String(), unix.O_RDWR|unix.O_APPEND)
	readOnly := errors.Is(err, unix.EROFS)
	if readOnly {
		f, err = d.openFile(lock.String(), unix.O_RDONLY)
	}
	if err != nil {
		return nil, err
	}
	a := &Active{file: *f, File: lock, readOnly: readOnly}
	err = a.load()
	// Other users may have rewritten a lock that they may write, and so have chosen which process is ended, even
	// if they cannot enter the directory now. (A lock with only a pid never causes a signal.)
	if err == nil && a.Content == record.Full && lax(&a.st) {
		err = d.refuseLax(a.name)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return a, nil
}

func (a *Active) load() error {
	content, err := a.read()
	if errors.Is(err, errTooLarge) { // not a record: a person may clear it
		a.Record, a.Appended, a.Content = record.Record{}, record.Appended{}, record.Damaged
		a.whole, a.seen = a.st.Size, a.st.Size
		return nil
	}
	if err != nil {
		return err
	}
	a.Record, a.Appended, a.Content = record.ParseAll(content)
	if a.machine = a.Record.Owner.Machine; a.mayBeOfAClone() { // another boot id then proves no death
		a.Record.Owner.Machine, a.Record.Job.Machine, a.Appended.Command.Machine = "", "", ""
		for i := range a.Appended.Survivors {
			a.Appended.Survivors[i].Machine = ""
		}
	}
	if a.Wrecked = a.Content == record.Damaged && a.wrecked(content); a.Wrecked {
		a.Content = record.Empty
	}
	a.whole = int64(bytes.LastIndexByte(content, '\n') + 1)
	a.seen = a.whole
	return nil
}

// mayBeOfAClone reports whether the machine id may be a cloned machine's: on a file system that machines may
// share, it counts only together with the node name.
func (a *Active) mayBeOfAClone() bool {
	if a.machine == "" {
		return false
	}
	node, err := sysfile.NodeName()
	return (err != nil || node != a.Node()) && !isLocal(a.fd)
}

// Node returns the node name that the owner's machine had when the lock was made.
func (a *Active) Node() string { return cmp.Or(a.Record.Node, a.Record.Atom.Host) }

// OtherBoot reports whether the lock was made in another boot by a machine with this machine's id (this one
// or a clone), on a file system that machines may share.
func (a *Active) OtherBoot() bool {
	made, here := a.Record.Owner.BootID(), process.Here()
	return a.machine != "" && a.machine == here.Machine && made != "" && here.BootID() != "" && made != here.BootID() && !isLocal(a.fd)
}

// OtherMachine reports whether a machine with another id made the lock; false if an id is not known.
func (a *Active) OtherMachine() bool {
	here := process.Here().Machine
	return a.machine != "" && here != "" && a.machine != here
}

// SupervisedBy reports whether the process holds the lock as the supervisor of a job.
func (a *Active) SupervisedBy(id process.Identity) bool {
	return a.Content == record.Full && a.Record.Supervised && a.Record.Owner.Same(id)
}

// Guard takes flock(2) on the lock's own inode, waiting at most wait (else ErrGuarded). The lock must still be
// in place and, when it is read again, have the same token (else ErrLost). Locks change only under their guard,
// so what was read stays true until Close. A read-only file system gives EROFS.
func (a *Active) Guard(wait time.Duration) error {
	if a.readOnly {
		return a.wrap(unix.EROFS)
	}
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

// Remove unlinks the lock. The caller holds its Guard.
func (a *Active) Remove() error {
	return a.wrap(sysfile.Unlinkat(a.dir.fd, a.name))
}

// Named reports whether the lock is still in place; false if that is unknown. It may be called after Close.
func (a *Active) Named() bool { mine, err := a.named(); return mine && err == nil }

// Restored reports whether a backup has brought the lock here: another machine made it, under another inode.
func (a *Active) Restored() bool {
	return a.Record.File != 0 && a.Record.File != a.st.Ino && a.Record.Owner.Machine != process.Here().Machine
}

// Close frees the guard before it closes the file: a child just forked keeps the descriptor open until its exec.
func (a *Active) Close() error {
	var err error
	if a.held {
		err = a.wrap(sysfile.Unlock(a.fd))
	}
	return errors.Join(err, a.file.Close())
}
