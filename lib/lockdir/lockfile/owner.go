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

// LocksOf opens the locks that these processes hold, as owners or in a dead owner's job, each under its guard: slots
// and readers' locks too, but not except, whose guard the caller has. The caller closes them, also after an error.
//
// If two newcomers end one job through different locks, each holds a guard that the other needs. To avoid a deadlock,
// each first takes the locks with names after that of except, and then waits only half as long for those before it.
func (d *Dir) LocksOf(holders []process.Identity, except atom.File, wait time.Duration) (held []*Active, err error) {
	files, err := d.Files(atom.ActiveLock, atom.ReaderLock)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range files {
		names = append(names, f.String())
	}
	slices.Sort(names)
	for _, side := range []int{1, -1} { // first the names after except, then those before
		for _, name := range names {
			if strings.Compare(name, except.String()) != side {
				continue
			}
			lock, err := d.lockIf(atom.ParseFile(name), wait, func(a *Active) (bool, error) { return a.heldBy(holders) })
			if err != nil { // another newcomer may be waiting for a guard that this one holds: do not keep it longer
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

// Found is Lock, but returns nil if the lock is missing or may not be read: no newcomer could take it over.
func (d *Dir) Found(f atom.File) (*Active, error) {
	lock, err := d.Lock(f)
	if errors.Is(err, fs.ErrNotExist) || fault.KindOf(err) == fault.NotPermitted {
		return nil, nil
	}
	return lock, err
}

func (a *Active) heldBy(ids []process.Identity) (bool, error) {
	owner, job := a.Record.Owner, a.Job()
	if slices.ContainsFunc(ids, owner.Same) {
		return true, nil
	}
	heir := func(id process.Identity) bool {
		return id.PGID == owner.PID || id.SID == owner.PID || slices.ContainsFunc(job.Recorded(), id.Same)
	}
	if owner.Life() != process.Dead {
		return false, nil
	}
	if slices.ContainsFunc(ids, heir) {
		return true, nil
	}
	marked, err := job.Marked()
	return slices.ContainsFunc(ids, func(id process.Identity) bool { return slices.Contains(marked, id.PID) }), err
}

// LockOf opens a lock of the owner under its guard; nil if the lock is not, or no longer, that owner's.
func (d *Dir) LockOf(owner process.Identity, f atom.File, wait time.Duration) (*Active, error) {
	return d.lockIf(f, wait, func(a *Active) (bool, error) { return a.Record.Owner.Same(owner), nil })
}

func (d *Dir) lockIf(f atom.File, wait time.Duration, is func(*Active) (bool, error)) (*Active, error) {
	lock, err := d.Found(f)
	if lock == nil {
		return nil, err
	}
	wanted := false
	if lock.Content == record.Full {
		wanted, err = is(lock)
	}
	if wanted && err == nil {
		if err = lock.GuardReporting(wait); err == nil {
			return lock, nil
		}
	}
	lock.Close()
	if errors.Is(err, locker.ErrLost) {
		err = nil
	}
	return nil, fault.Wrap(lock.Path(), err)
}

// Age returns the lock's age: how long the machine has been awake since the lock was made. If that is unknown (another
// boot or time namespace, no record) or a pass clock is set, Age returns the time from the mtime to that clock or now.
func (a *Active) Age(now locker.Moment) time.Duration {
	if age, known := a.Record.Age(); known && now.Fixed.IsZero() && a.Content == record.Full {
		return age
	}
	return max(0, now.Effective().Sub(a.Modified()))
}

// Unchecked returns the reason why this process cannot know whether the owner lives.
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

// Untold returns an error if the request has no token and the lock's owner cannot be checked (no /proc, no boot id).
func (a *Active) Untold(r *locker.ReleaseRequest) error {
	if r.Token != "" || a.Content != record.Full {
		return nil
	}
	if err := process.Readable(); err != nil {
		return a.wrap(err)
	}
	if a.Record.Owner.BootID() != "" && process.Here().BootID() != "" {
		return nil
	}
	return fault.New(fault.NotPermitted, a.Path(), "not released: "+a.Unchecked().Error()+"; give its token with --token")
}

// Survived returns an error if a process that the lock records besides its owner, or had no room to record,
// may live. The caller releases for the owner, so the lock is of this boot.
func (a *Active) Survived() error {
	job := a.Job()
	if len(job.Recorded()) == 0 && !job.Uncounted {
		return nil
	}
	if err := process.Readable(); err != nil {
		return a.wrap(err)
	}
	if err := job.OfThisBoot().Survived(); err != nil {
		return &fault.Error{Kind: fault.NotPermitted, Object: a.Path(), Err: fault.Worded("not released: "+err.Error(), err)}
	}
	return nil
}
