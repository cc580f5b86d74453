package atom

import (
	"errors"
	"io/fs"
	"time"

	"adlock/lib/exit"
	"adlock/lib/learn"
	"adlock/lib/lock"
	"adlock/lib/name"
	"adlock/lib/policy"
	"adlock/lib/process"
)

// fromStartSlack is taken off IfElapsed where it counts from the start: cron
// starts a job up to a second early or late, and a daily job must not slip.
const fromStartSlack = time.Second

// View is what was found of an atom at one moment.
type View struct {
	Last   policy.Last
	Active policy.Active
	Memory lock.Memory
	Record lock.Record // of the active lock, where one is held and has a record
	active *lock.Active
	noLast bool      // there is no last lock yet
	stamp  time.Time // the last lock's mtime
}

// Close lets go of the active lock's file, and of its guard.
func (v *View) Close() {
	if v.active != nil {
		v.active.Close()
	}
}

// moment is the time that ages are counted to.
type moment struct {
	real  time.Time // the clock, or the file system's own idea of now
	fixed time.Time // the pass clock; zero: none
}

func (r *Request) now() moment { return moment{real: time.Now(), fixed: r.Now} }

// figure is the 'now' of both decisions: the pass clock where there is one.
func (m moment) figure() time.Time {
	if m.fixed.IsZero() {
		return m.real
	}
	return m.fixed
}

// Look reads both locks and writes nothing: the first look, --dry-run, status.
// A missing last lock is one that never completed. The limits of r that are
// learned are put in force. The caller closes the View.
func (k *Keeper) Look(r *Request) (View, error) { return k.look(r, r.Atom.Name(), r.now()) }

func (k *Keeper) look(r *Request, files string, now moment) (View, error) {
	v := View{}
	err := k.lookAtLast(&v, r, files, now)
	if err == nil && policy.Due(r.Limits, v.Last) { // else it is denied, whatever the active lock says
		err = k.lookAtActive(&v, r.Atom, files, now)
	}
	if err != nil {
		v.Close()
		return View{}, err
	}
	return v, nil
}

func (k *Keeper) lookAtLast(v *View, r *Request, files string, now moment) error {
	last, err := k.Dir.Last(files)
	if v.noLast = errors.Is(err, fs.ErrNotExist); v.noLast {
		r.resolve(learn.State{})
		return nil
	}
	if err != nil {
		return err
	}
	if err := k.same(lock.LastPrefix+files, last.Memory.Atom, r.Atom); err != nil {
		return err
	}
	r.resolve(last.Memory.Learned)
	v.Memory, v.stamp = last.Memory, last.Completed
	v.Last = lastView(last, r.FromStart, now)
	return nil
}

func lastView(last lock.Last, fromStart bool, now moment) policy.Last {
	if last.Completed.IsZero() {
		return policy.Last{}
	}
	view := policy.Last{
		Completed: true,
		Age:       now.figure().Sub(last.Completed),
		Future:    last.Completed.Sub(now.real) > policy.FutureSlack,
	}
	if started := last.Memory.Started; fromStart && !started.IsZero() && !started.After(last.Completed) {
		view.Age = now.figure().Sub(started) + fromStartSlack
	}
	if view.Age > 0 {
		view.Age = max(0, view.Age-last.Cut)
	}
	return view
}

func (k *Keeper) lookAtActive(v *View, a name.Atom, files string, now moment) error {
	active, err := k.Dir.Active(files)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	v.active, v.Record = active, active.Record
	switch active.Content {
	case lock.Damaged:
		return damaged(active)
	case lock.Full:
		if err := k.same(lock.ActivePrefix+files, active.Record.Atom, a); err != nil {
			return err
		}
	}
	v.Active = activeView(active, now)
	return nil
}

// same compares identities: two atoms whose names are alike only by their
// checksums must not deny each other in silence.
func (k *Keeper) same(file string, found, wanted name.Atom) error {
	if found == (name.Atom{}) || found == wanted {
		return nil
	}
	return exit.New(exit.System, k.Dir.Path(file), "is the lock of another atom with the same name: "+found.String()+" (wanted: "+wanted.String()+")")
}

func damaged(active *lock.Active) error {
	return exit.New(exit.IO, active.Path(), "is cut short, too large or of an unknown format; if you know that its owner is dead: adlock clear "+active.Name())
}

func activeView(active *lock.Active, now moment) policy.Active {
	view := policy.Active{Held: true, Age: activeAge(active, now)}
	switch active.Content {
	case lock.Empty:
		view.Empty, view.Age = true, now.real.Sub(active.Modified())
	case lock.PIDOnly:
		view.Owner = policy.Untouched
		if !process.PIDLives(active.Record.Owner.PID) {
			view.Owner = policy.Dead
		}
	default:
		view.Asked, view.Patience = active.Record.ExpireAfter, active.Record.Patience
		view.Owner = ownerOf(active.Job())
	}
	return view
}

func ownerOf(job process.Job) policy.Owner {
	switch job.Owner.Life() {
	case process.Unknown:
		return policy.Unknown
	case process.Alive:
		if process.IsAncestor(job.Owner.PID) {
			return policy.Ancestor
		}
		return policy.Lives
	}
	if job.Remains() {
		return policy.Orphaned
	}
	return policy.Dead
}

// activeAge does not mind steps of the wall clock where the lock was made in
// this boot and this time namespace; else it is the age between inodes. A pass
// clock replaces 'now' and so needs the wall clock.
func activeAge(active *lock.Active, now moment) time.Duration {
	here := process.Here()
	if owner := active.Record.Owner; now.fixed.IsZero() && active.Content == lock.Full &&
		owner.Boot != "" && owner.Boot == here.Boot && owner.TimeNS == here.TimeNS {
		return process.Boottime() - active.Record.Boottime
	}
	return now.figure().Sub(active.Modified())
}

// Foretell says whether the request would be granted now, and why, and touches
// nothing. A lock directory that is not there is one without locks.
func Foretell(path string, r *Request) (granted bool, reason string, err error) {
	dir, err := lock.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		r.resolve(learn.State{})
		return true, policy.Reason(policy.Acquire, r.Limits, policy.Last{}, policy.Active{}), nil
	}
	if err != nil {
		return false, "", err
	}
	defer dir.Close()
	v, err := (&Keeper{Dir: dir}).Look(r)
	if err != nil {
		return false, "", err
	}
	defer v.Close()
	step := policy.Decide(r.Limits, v.Last, v.Active)
	granted = step == policy.Acquire || step == policy.Expire || step == policy.Reclaim || step == policy.Unempty
	return granted, policy.Reason(step, r.Limits, v.Last, v.Active), nil
}
