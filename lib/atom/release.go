package atom

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"adlock/lib/exit"
	"adlock/lib/lock"
	"adlock/lib/name"
	"adlock/lib/process"
	"adlock/lib/runlog"
)

// guardWait is how long a release waits at least for a newcomer that is looking at
// the lock; one that is ending the owner takes longer.
const guardWait = 200 * time.Millisecond

// Return says how an acquisition ends.
type Return struct {
	Files   string // NAME of the lock
	Token   string // of the acquisition; "": whichever belongs to this process or an ancestor
	Status  runlog.Opt[int]
	Signal  string // that ended the job, without SIG
	Expired bool   // the owner ended the job itself, at ExpireAfter
	NoStamp bool   // the run does not count for IfElapsed

	// Again: an earlier release may have been cut short. Where the lock is gone, or
	// another's, that one released it, and nothing is lost.
	Again bool

	// Withdraw: the acquisition came to nothing, as the one who was to take the atom
	// died at it. Nothing is stamped; a lock that is not this process's or an
	// ancestor's stays; and as with Again nothing is lost.
	Withdraw bool

	Patience time.Duration // how long to wait for a newcomer at the lock; at least guardWait
}

// Release stamps the last lock, then removes the active lock. Where the lock is
// not this acquisition's any more, or is being taken over, it changes nothing
// and returns an error with status 75: lost; lock.ErrGuarded in it says that a
// newcomer is ending this owner. Where one has begun to and what it recorded lives,
// that keeps the lock, with status 77.
func (k *Keeper) Release(r Return) error {
	active, err := k.Dir.Active(r.Files)
	if err == nil && !r.owns(active) || errors.Is(err, fs.ErrNotExist) {
		if reader, found := k.reader(r); !errors.Is(found, fs.ErrNotExist) {
			if err == nil {
				active.Close()
			}
			active, err = reader, found
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return k.lost(r, nil, errors.New("the lock is gone"))
	}
	if err != nil {
		return err
	}
	defer active.Close()
	if !r.owns(active) {
		return k.lost(r, active, lock.ErrLost)
	}
	switch err := active.Guard(max(guardWait, r.Patience)); {
	case errors.Is(err, lock.ErrGuarded), errors.Is(err, lock.ErrLost):
		return k.lost(r, active, err)
	case err != nil:
		return err
	}
	if err := active.Job().Survived(); err != nil {
		return &exit.Error{Code: exit.NotPermitted, Object: active.Path(), Err: fmt.Errorf("not released: %w", err)}
	}
	if err := k.leaveReaders(r, active); err != nil {
		return err
	}
	k.learnFromRelease(r, active.Record)
	failed := k.stampRelease(r, active)
	slots, err := k.releaseSlots(active.Record)
	defer closeAll(slots)
	failed = errors.Join(failed, err)
	if err := active.Remove(); err != nil {
		return errors.Join(failed, err)
	}
	k.recordRelease(r, active)
	return failed
}

// leaveReaders removes the reader's lock beside an active one: whoever holds both
// died on its way in.
func (k *Keeper) leaveReaders(r Return, active *lock.Active) error {
	if _, isReader := lock.IsReader(active.Name()); isReader || !active.Record.Shared {
		return nil
	}
	reader, err := k.reader(r)
	if err != nil {
		return ignoreMissing(err)
	}
	defer reader.Close()
	if err := reader.Guard(guardWait); err != nil {
		return err
	}
	return reader.Remove()
}

func (r Return) owns(active *lock.Active) bool {
	if active.Content != lock.Full {
		return false
	}
	if r.Token != "" && (active.Record.Token != r.Token || !r.Withdraw) {
		return active.Record.Token == r.Token
	}
	owner := active.Record.Owner
	return process.IsAncestor(owner.PID) && owner.Life() == process.Alive
}

// stampRelease stamps the last lock. A failure does not keep the lock: the
// owner is done, and a lock without work behind it would be worse than a run
// too soon. The caller reports it.
func (k *Keeper) stampRelease(r Return, active *lock.Active) error {
	if r.NoStamp || r.Withdraw {
		return nil
	}
	request := Request{Atom: active.Record.Atom}
	return k.stamp(r.Files, active, request.memory())
}

// stamp records that the run under this active lock ends now.
func (k *Keeper) stamp(files string, run *lock.Active, fresh lock.Memory) error {
	return k.Dir.Marked(files, func() error {
		return errors.Join(k.rememberStart(files, run, fresh), k.Dir.Stamp(files, fresh))
	})
}

// rememberStart records when the run began where it asked for that, or where an
// earlier one did: else its start would be taken for the last run's.
func (k *Keeper) rememberStart(files string, run *lock.Active, fresh lock.Memory) error {
	last, err := k.Dir.Last(files)
	if errors.Is(err, fs.ErrNotExist) {
		last, err = lock.Last{Memory: fresh}, nil
	}
	if err != nil {
		return err
	}
	if !run.Record.FromStart && last.Memory.Started.IsZero() {
		return nil
	}
	last.Memory.Started = run.Modified()
	return k.Dir.Remember(files, last.Completed, last.Memory)
}

// lost records what the lock turned out to be: gone, another's, or still one's
// own and being taken over.
func (k *Keeper) lost(r Return, active *lock.Active, why error) error {
	if (r.Again || r.Withdraw) && !errors.Is(why, lock.ErrGuarded) {
		return nil
	}
	a, _ := name.Parse(r.Files)
	e := event(runlog.Lost, a, 0)
	if active != nil {
		found := active.Record
		e = event(runlog.Lost, found.Atom, 0)
		if found.Token == r.Token {
			e.PID = found.Owner.PID
		} else {
			e.Owner, e.OwnerToken = found.Owner.PID, found.Token
		}
	}
	e.Token, e.Reason = r.Token, why.Error()
	k.record(e)
	return &exit.Error{Code: exit.Denied, Object: k.Dir.Path(lock.ActivePrefix + r.Files), Err: fmt.Errorf("lost: %w", why)}
}

// Clear removes the active lock NAME, or a reader's lock read.NAME.PID, that a
// person has judged dead; refused (77) while the owner lives. The last lock is
// not stamped: nothing completed.
func (k *Keeper) Clear(files string) error {
	path, open := k.Dir.Path(lock.ActivePrefix+files), k.Dir.Active
	if _, reads := lock.IsReader(files); reads {
		path, open = k.Dir.Path(files), k.Dir.Reader
	}
	active, err := open(files)
	if errors.Is(err, fs.ErrNotExist) {
		return exit.New(exit.Usage, path, "no such lock")
	}
	if err != nil {
		return err
	}
	defer active.Close()
	switch err := active.Guard(guardWait); {
	case errors.Is(err, lock.ErrGuarded), errors.Is(err, lock.ErrLost):
		return exit.New(exit.Denied, path, err.Error())
	case err != nil:
		return err
	}
	if mayLive(active) {
		return exit.New(exit.NotPermitted, path, "its owner lives")
	}
	slots, failed := k.releaseSlots(active.Record)
	defer closeAll(slots)
	if err := active.Remove(); err != nil {
		return errors.Join(failed, err)
	}
	cleared := event(runlog.Clear, active.Record.Atom, 0)
	cleared.Owner, cleared.OwnerToken = active.Record.Owner.PID, active.Record.Token
	k.record(cleared)
	return failed
}

// mayLive is false for what a person may clear: the dead, and those of whom it
// only cannot be proved that they are.
func mayLive(active *lock.Active) bool {
	switch active.Content {
	case lock.Empty, lock.Damaged:
		return false
	case lock.PIDOnly:
		return process.PIDLives(active.Record.Owner.PID)
	}
	job := active.Job()
	return job.Owner.Life() == process.Alive || job.Alive()
}

// Prune removes the last locks that nobody has used for longer than older and
// whose atom is not running. It returns their names.
func (k *Keeper) Prune(older time.Duration) ([]string, error) {
	names, err := k.Dir.Names(lock.LastPrefix)
	if err != nil {
		return nil, err
	}
	var pruned []string
	for _, files := range names {
		removed, err := k.prune(files, older)
		if removed {
			pruned = append(pruned, files)
		}
		if err != nil {
			return pruned, err
		}
	}
	return pruned, nil
}

// prune looks again under a lock of its own: a newcomer that came and went after
// the first look has stamped the last lock.
func (k *Keeper) prune(files string, older time.Duration) (removed bool, err error) {
	if unused, err := k.unused(files, older); err != nil || !unused {
		return false, err
	}
	_, err = k.underOwn(files, func() error {
		changed, err := k.Dir.LastChanged(files)
		if err != nil || time.Since(changed) < older {
			return ignoreMissing(err)
		}
		err = k.Dir.RemoveLast(files)
		removed = err == nil
		return err
	})
	return removed, err
}

func (k *Keeper) unused(files string, older time.Duration) (bool, error) {
	changed, err := k.Dir.LastChanged(files)
	if err != nil || time.Since(changed) < older {
		return false, ignoreMissing(err)
	}
	active, err := k.Dir.Active(files)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err == nil {
		active.Close()
	}
	return false, err
}

// End ends the owner of the active lock carefully and leaves the lock: the next
// newcomer finds its owner dead. No lock, no owner: nothing to do. A lock with
// only a pid, or one that cannot be read, condemns nobody.
func (k *Keeper) End(files string, pause time.Duration) error {
	active, err := k.Dir.Active(files)
	if err != nil {
		return ignoreMissing(err)
	}
	defer active.Close()
	if active.Content != lock.Full {
		return exit.New(exit.NotPermitted, active.Path(), "does not say who its owner is")
	}
	switch err := active.Guard(guardWait); {
	case errors.Is(err, lock.ErrGuarded):
		return exit.New(exit.Denied, active.Path(), err.Error())
	case errors.Is(err, lock.ErrLost):
		return nil // its owner has released it
	case err != nil:
		return err
	}
	r := Request{Atom: active.Record.Atom, Pause: pause}
	v := View{active: active, Record: active.Record}
	err = k.endJob(&r, &v)
	var unwritten *unwrittenError
	if err == nil || errors.As(err, &unwritten) {
		return err
	}
	return &exit.Error{Code: exit.NotPermitted, Object: active.Path(), Err: err}
}
