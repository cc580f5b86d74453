package lockfile

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/lib/record"
)

// LocksOf opens the locks that these processes hold, slots and readers' locks too, save the
// one that the caller has open already, each under its guard, for which it waits. The caller
// closes them, also with an error.
//
// Two newcomers that end one job at the same time each hold the guard of the lock at which they
// came, and each wants the other one's. So that not both give up, the locks have an order,
// their names: each takes first what comes behind its own, one after the other, and waits
// half as long for what comes before it.
func (d *Dir) LocksOf(holders []process.Identity, except atom.File, wait time.Duration) (held []*Active, err error) {
	files, err := d.Files(atom.ActiveLock, atom.ReaderLock)
	if err != nil {
		return nil, err
	}
	byName := func(a, b atom.File) int { return strings.Compare(a.String(), b.String()) }
	slices.SortFunc(files, byName)
	for _, side := range []int{1, -1} { // behind it, before it
		for _, f := range files {
			if byName(f, except) != side {
				continue
			}
			lock, err := d.lockIf(f, wait, func(a *Active) bool { return a.heldBy(holders) })
			if err != nil { // what waits for us at the next one is not to wait longer than we do
				return held, err
			}
			if lock != nil {
				held = append(held, lock)
			}
		}
		wait /= 2
	}
	return held, nil
}

// Found is Lock, and nil where it is not there or may not be read: no other process takes that either.
func (d *Dir) Found(f atom.File) (*Active, error) {
	lock, err := d.Lock(f)
	if errors.Is(err, fs.ErrNotExist) || fault.KindOf(err) == fault.NotPermitted {
		return nil, nil
	}
	return lock, err
}

// heldBy tells whether one of these processes is the lock's owner or, where that is dead,
// keeps the lock as one of its job.
func (a *Active) heldBy(ids []process.Identity) bool {
	owner, recorded := a.Record.Owner, a.Job().Recorded()
	heir := func(id process.Identity) bool {
		return id.PGID == owner.PID || id.SID == owner.PID || slices.ContainsFunc(recorded, id.Same)
	}
	return slices.ContainsFunc(ids, owner.Same) || slices.ContainsFunc(ids, heir) && owner.Life() == process.Dead
}

// LockOf opens a lock under its guard, for which it waits; nil where it is not the owner's,
// or not any more.
func (d *Dir) LockOf(owner process.Identity, f atom.File, wait time.Duration) (*Active, error) {
	return d.lockIf(f, wait, func(a *Active) bool { return a.Record.Owner.Same(owner) })
}

// lockIf is LockOf for a lock of which is says that it is wanted.
func (d *Dir) lockIf(f atom.File, wait time.Duration, is func(*Active) bool) (*Active, error) {
	lock, err := d.Found(f)
	if lock == nil {
		return nil, err
	}
	if lock.Content == record.Full && is(lock) {
		if err = lock.GuardAloud(wait); err == nil {
			return lock, nil
		}
	}
	lock.Close()
	if errors.Is(err, locker.ErrLost) {
		err = nil
	}
	return nil, fault.Wrap(lock.Path(), err)
}

// Age does not mind steps of the wall clock where the lock was made in
// this boot and this time namespace; else it is the age between inodes. A pass
// clock replaces 'now' and so needs the wall clock.
func (a *Active) Age(now locker.Moment) time.Duration {
	if age, known := a.Record.Age(); known && now.Fixed.IsZero() && a.Content == record.Full {
		return age
	}
	return now.Figure().Sub(a.Modified())
}

// Unchecked is the reason why this process cannot know whether the owner lives.
func (a *Active) Unchecked() error { return unchecked(a.Record.Owner, process.Here()) }

func unchecked(owner, here process.Identity) error {
	switch nameless := owner.Machine == "" && here.Machine == ""; {
	case nameless && owner.BootID() == "" && here.BootID() == "":
		return errors.New("there is neither a boot id (/proc/sys) nor an /etc/machine-id to tell its owner by")
	case owner.BootID() == "" || here.BootID() == "":
		return errors.New("there is no boot id (/proc/sys) to tell its owner by")
	case nameless && owner.Boot != here.Boot:
		return errors.New("its owner is of another boot, and there is no /etc/machine-id to tell whether of this machine")
	}
	return errors.New("its owner cannot be checked from here")
}

// Untold is the error where only a token could tell whose the lock is, and the request names
// none.
func (a *Active) Untold(r locker.ReleaseRequest) error {
	if r.Token != "" || a.Content != record.Full {
		return nil
	}
	if err := process.Readable(); err != nil {
		return a.wrap(err)
	}
	if a.Record.Owner.BootID() != "" && process.Here().BootID() != "" {
		return nil
	}
	return fault.New(fault.NotPermitted, a.Path(), "not released: "+a.Unchecked().Error()+"; name its token: --token")
}

// Survived is the error where a process that the lock recorded beside its owner may live. The
// owner itself releases the lock, so the lock is of this boot, also where the system shows no
// boot id that the lock could name.
func (a *Active) Survived() error {
	job := a.Job()
	if len(job.Recorded()) == 0 && !job.Uncounted {
		return nil
	}
	if err := process.Readable(); err != nil {
		return a.wrap(err)
	}
	if err := job.OfThisBoot().Survived(); err != nil {
		return &fault.Error{Kind: fault.NotPermitted, Object: a.Path(), Err: fmt.Errorf("not released: %w", err)}
	}
	return nil
}
