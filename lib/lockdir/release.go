package lockdir

import (
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/killer"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/record"
)

// guardWait is how long a release waits at least for a newcomer that is looking at
// the lock; one that is ending the owner takes longer.
const guardWait = 200 * time.Millisecond

// Release stamps the last lock, then removes the active lock. Where the lock is
// not this acquisition's any more, or is being taken over, it changes nothing
// and returns an error with status 75: lost; locker.ErrGuarded in it says that another process
// is at the lock, and locker.IsEnded that it is a newcomer that ends this owner. Where one has
// begun to and what it recorded lives, that keeps the lock, with status 77.
func (l *Locker) Release(r locker.ReleaseRequest) error {
	active, err := l.Dir.Active(r.Name)
	if r.AtOnce && (err != nil || !owns(r, active) || active.Record.Slots > 0 || active.Record.Learn) {
		if err == nil {
			active.Close()
		}
		return locker.ErrNotAtOnce
	}
	if err == nil && !owns(r, active) || errors.Is(err, fs.ErrNotExist) {
		if reader, found := l.reader(r); !errors.Is(found, fs.ErrNotExist) {
			if err == nil {
				active.Close()
			}
			active, err = reader, found
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return l.lost(r, nil, errors.New("the lock is gone"))
	}
	if err != nil {
		return err
	}
	defer active.Close()
	if !owns(r, active) {
		if err := active.Untold(r); err != nil {
			return err
		}
		return l.lost(r, active, locker.ErrLost)
	}
	switch signalled, err := guardOwn(r, active); {
	case r.AtOnce && err != nil:
		return locker.ErrNotAtOnce
	case errors.Is(err, locker.ErrGuarded) && (signalled || l.isEnded(r.Name, active.Record)):
		return l.EndedByForce(r, active.Record, active.GuardHolder())
	case errors.Is(err, locker.ErrGuarded):
		return active.Aloud(err)
	case errors.Is(err, locker.ErrLost):
		return l.lost(r, active, err)
	case err != nil:
		return err
	}
	if err := active.Survived(); err != nil {
		return err
	}
	if err := l.leaveReaders(r, active); err != nil {
		return err
	}
	l.learnFromRelease(r, active.Record)
	failed := l.stampRelease(r, active)
	if r.AtOnce && failed != nil {
		return locker.ErrNotAtOnce // it is to be said, and the lock stays until then
	}
	slots, err := l.releaseSlots(active.Record)
	defer closeAll(slots)
	failed = errors.Join(failed, err)
	if err := active.Remove(); err != nil {
		return errors.Join(failed, err)
	}
	l.Released(r, active.Record, failed)
	return failed
}

// guardOwn takes the guard of the lock that is to be released. A newcomer that holds
// it for longer than a look is ending the owner, or is stopped. An ending signals the process
// that releases for a script too, as a part of the job: it has then nothing left to wait for,
// and can still say why.
func guardOwn(r locker.ReleaseRequest, active *lockfile.Active) (signalled bool, err error) {
	err = active.Guard(0)
	if r.AtOnce || !errors.Is(err, locker.ErrGuarded) {
		return false, err
	}
	signals := make(chan os.Signal, 2)
	if r.ForScript {
		signal.Notify(signals, unix.SIGINT, unix.SIGTERM)
	}
	for left := max(guardWait, r.GuardWait); left > 0 && len(signals) == 0; left -= guardLook {
		if err = active.Guard(guardLook); !errors.Is(err, locker.ErrGuarded) {
			return false, err
		}
	}
	return len(signals) > 0, err
}

// guardLook is how often a release looks whether it was signalled meanwhile.
const guardLook = 20 * time.Millisecond

// leaveReaders removes the reader's lock beside an active one: an owner of
// both died on its way in.
func (l *Locker) leaveReaders(r locker.ReleaseRequest, active *lockfile.Active) error {
	if active.File.Kind == atom.ReaderLock || !active.Record.Shared {
		return nil
	}
	reader, err := l.reader(r)
	if err != nil {
		return ignoreMissing(err)
	}
	defer reader.Close()
	if err := reader.GuardAloud(guardWait); err != nil {
		return err
	}
	return reader.Remove()
}

// stampRelease stamps the last lock. A failure does not keep the lock: the
// owner is done, and a lock without work behind it would be worse than a run
// too soon. The caller reports it.
func (l *Locker) stampRelease(r locker.ReleaseRequest, active *lockfile.Active) error {
	if r.NoStamp || r.Withdraw {
		return l.Dir.RemoveTick(r.Name, r.Tick)
	}
	return l.stamp(r.Name, active, (&locker.Request{Atom: active.Record.Atom}).NewMemory())
}

// stamp records that the run under this active lock ends now.
func (l *Locker) stamp(name atom.Name, run *lockfile.Active, fresh record.Memory) error {
	return l.Dir.Marked(name, func() error {
		return errors.Join(l.rememberStart(name, run, fresh), l.Dir.Stamp(name, fresh))
	})
}

// rememberStart records when the run began where it asked for that, or where an
// earlier one did: else its start would be taken for the last run's.
func (l *Locker) rememberStart(name atom.Name, run *lockfile.Active, fresh record.Memory) error {
	last, err := l.Dir.Last(name)
	if errors.Is(err, fs.ErrNotExist) {
		last, err = record.Last{Memory: fresh}, nil
	}
	if err != nil {
		return err
	}
	if !run.Record.FromStart && last.Memory.Started.IsZero() {
		return nil
	}
	last.Memory.Started = run.Modified().Add(-run.Record.Asked)
	return l.Dir.Remember(name, last.Completed, last.Memory)
}

// lost says what the lock turned out to be: gone, or another's.
func (l *Locker) lost(r locker.ReleaseRequest, active *lockfile.Active, why error) error {
	if r.Again || r.Withdraw {
		return nil
	}
	a, _ := r.Name.Atom()
	var found *record.Record
	if active != nil {
		found = &active.Record
	}
	return l.Lost(l.Dir.Path(r.Name.ActiveLock()), r, a, found, why)
}

func owns(r locker.ReleaseRequest, active *lockfile.Active) bool {
	return active.Content == record.Full && r.Owns(active.Record)
}

// Clear removes an active lock, or a reader's, that a person has judged dead; refused
// (77) while the owner lives. The last lock is not stamped: nothing completed.
func (l *Locker) Clear(lock atom.File) error {
	path := l.Dir.Path(lock.String())
	active, err := l.Dir.Lock(lock)
	if errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.Usage, path, "no such lock")
	}
	if err != nil {
		return err
	}
	defer active.Close()
	switch err := active.GuardAloud(guardWait); {
	case errors.Is(err, locker.ErrLost):
		return fault.New(fault.Denied, path, err.Error())
	case err != nil:
		return err
	}
	if err := process.Passing(); err != nil { // the owner may live
		return fault.Wrap(path, err)
	}
	if alive := active.InUse(); alive != "" {
		return fault.New(fault.NotPermitted, path, alive)
	}
	slots, failed := l.releaseSlots(active.Record)
	defer closeAll(slots)
	if errors.Is(failed, locker.ErrGuarded) { // the slot is to be cleared too
		return failed
	}
	if err := active.Remove(); err != nil {
		return errors.Join(failed, err)
	}
	cleared := active.Record
	if cleared.Atom == (atom.Atom{}) { // an empty lock, or a damaged one
		cleared.Atom, _ = lock.Name.Atom()
	}
	l.Cleared(cleared, "")
	return failed
}

// Prune removes the last locks that were not used for longer than older and
// whose atom is not running. It returns their names.
func (l *Locker) Prune(older time.Duration) ([]atom.Name, error) {
	files, err := l.Dir.Files(atom.LastLock)
	if err != nil {
		return nil, err
	}
	var pruned []atom.Name
	for _, f := range files {
		removed, err := l.prune(f.Name, older)
		if removed {
			pruned = append(pruned, f.Name)
		}
		if err != nil {
			return pruned, err
		}
	}
	return pruned, nil
}

// prune looks again under a lock of its own: a newcomer that came and went after
// the first look has stamped the last lock.
func (l *Locker) prune(name atom.Name, older time.Duration) (removed bool, err error) {
	if unused, err := l.unused(name, older); err != nil || !unused {
		return false, err
	}
	_, err = l.underOwn(name, func() error {
		changed, err := l.Dir.LastChanged(name)
		if err != nil || time.Since(changed) < older {
			return ignoreMissing(err)
		}
		err = errors.Join(l.Dir.RemoveLast(name), l.Dir.RemoveTicks(name))
		removed = err == nil
		return err
	})
	if errors.Is(err, lockfile.ErrRunsUnlocked) {
		err = nil
	}
	return removed, err
}

func (l *Locker) unused(name atom.Name, older time.Duration) (bool, error) {
	changed, err := l.Dir.LastChanged(name)
	if err != nil || time.Since(changed) < older {
		return false, ignoreMissing(err)
	}
	active, err := l.Dir.Active(name)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err == nil {
		active.Close()
	}
	return false, err
}

// Stop ends the job that holds the lock, an active lock or a reader's, as a newcomer ends one
// that has expired: a newcomer that is at the lock is waited for as long as an ending takes. It
// teaches nothing. With leave the lock stays, for the next newcomer; else the last lock is
// stamped, and the lock removed. It is fs.ErrNotExist where the job that was meant has ended.
func (l *Locker) Stop(r *locker.Request, lock atom.File, leave bool) error {
	active, err := l.Dir.Lock(lock)
	if err != nil {
		return err
	}
	v := view{active: active}
	defer v.close()
	switch err := active.GuardAloud(guardWait + 4*min(r.Pause, time.Hour)); {
	case errors.Is(err, locker.ErrLost):
		return fs.ErrNotExist
	case err != nil:
		return err
	case active.Content != record.Full: // it condemns no process
		return fault.New(fault.NotPermitted, active.Path(), "does not say who its owner is")
	}
	r.Atom = active.Record.Atom
	if v.setActive(locker.Moment{Real: time.Now()}); v.Active.Owner == policy.Gone {
		return fs.ErrNotExist
	}
	l.Stopping(r, &v.View)
	var unwritten *unwrittenError
	switch err := l.endJob(r, &v); {
	case errors.As(err, &unwritten):
		return err
	case errors.Is(err, killer.ErrAncestor):
		return &fault.Error{Kind: fault.NotPermitted, Object: active.Path(), Err: err}
	case err != nil:
		_, err = l.stuck(r, &v, err)
		return err
	case leave:
		return nil
	}
	if err := l.free(r, active); err != nil {
		return err
	}
	l.Stopped(r, &v.View)
	return nil
}

// free gives back, under the guard, what an owner held that is dead with its job.
func (l *Locker) free(r *locker.Request, active *lockfile.Active) error {
	slots, err := l.releaseSlots(active.Record)
	defer closeAll(slots)
	return errors.Join(err, l.stamp(active.File.Name, active, r.NewMemory()), active.Remove())
}
