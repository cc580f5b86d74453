package lockfile

import (
	"errors"
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
// Two who end one job at the same time each hold the guard of the lock at which they
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
			if err != nil { // who waits for us at the next one is not to wait longer than we do
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

// Found is Lock, and nil where it is not there or may not be read: nobody takes that either.
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
