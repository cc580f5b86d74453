package lockdir

import (
	"errors"
	"io/fs"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/learn"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/record"
)

// look reads both locks and writes nothing. A missing last lock is one that never
// completed. The limits of r that are learned are put in force. The caller closes
// the view.
func (l *Locker) look(r *locker.Request, name atom.Name, now locker.Moment) (view, error) {
	v := view{}
	err := l.lookAtLast(&v, r, name, now)
	if err == nil && policy.Due(r.Limits, v.Last) { // else it is denied, whatever the active lock says
		err = l.lookAtActive(&v, r.Atom, name, now)
	}
	if err != nil {
		v.close()
		return view{}, err
	}
	return v, nil
}

func (l *Locker) lookAtLast(v *view, r *locker.Request, name atom.Name, now locker.Moment) error {
	last, err := l.Dir.Last(name)
	if v.noLast = errors.Is(err, fs.ErrNotExist); v.noLast {
		r.Resolve(learn.State{})
		return nil
	}
	if err != nil {
		return err
	}
	if err := r.Atom.CheckFound(l.Dir.Path(name.LastLock()), last.Memory.Atom); err != nil {
		return err
	}
	found := r.ViewOf(last, now)
	v.Last, v.Memory = found.Last, found.Memory
	v.TickUsed, err = l.Dir.HasTick(name, r.Tick)
	return err
}

func (l *Locker) lookAtActive(v *view, a atom.Atom, name atom.Name, now locker.Moment) error {
	active, err := l.Dir.Active(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	v.active = active
	switch active.Content {
	case record.Damaged:
		return damaged(active)
	case record.Full:
		if err := a.CheckFound(active.Path(), active.Record.Atom); err != nil {
			return err
		}
	}
	v.setActive(now)
	return nil
}

// setActive fills in what there is to say of the active lock.
func (v *view) setActive(now locker.Moment) {
	active := v.active
	v.Record, v.Active, v.Job = active.Record, activeView(active, now), active.Job()
}

func damaged(active *lockfile.Active) error {
	return fault.New(fault.IO, active.Path(), "is cut short, too large or of an unknown format; if you know that its owner is dead: adlock clear "+active.File.Called())
}

func activeView(active *lockfile.Active, now locker.Moment) policy.Active {
	view := policy.Active{Held: true, Age: activeAge(active, now)}
	switch active.Content {
	case record.Empty:
		view.Empty, view.Age = true, now.Real.Sub(active.Modified())
	case record.PIDOnly:
		view.Owner = policy.Untouched
		if !process.PIDLives(active.Record.Owner.PID) {
			view.Owner = policy.Gone
		}
	default:
		view.Asked, view.Patience = active.Record.ExpireAfter, active.Record.Patience
		view.Owner = locker.OwnerOf(active.Job())
		view.Entering = active.Record.Shared && view.Owner == policy.Lives && process.Boottime()-active.Record.Boottime < entering
	}
	return view
}

// activeAge does not mind steps of the wall clock where the lock was made in
// this boot and this time namespace; else it is the age between inodes. A pass
// clock replaces 'now' and so needs the wall clock.
func activeAge(active *lockfile.Active, now locker.Moment) time.Duration {
	if age, known := active.Record.Age(); known && now.Fixed.IsZero() && active.Content == record.Full {
		return age
	}
	return now.Figure().Sub(active.Modified())
}

// DryRun is Locker.DryRun for the directory at path, which need not be there:
// one that is not is one without locks.
func DryRun(path string, r *locker.Request) (granted bool, reason string, err error) {
	dir, err := lockfile.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := lockfile.MayMake(path); err != nil {
			return false, "", err
		}
		r.Resolve(learn.State{})
		d := policy.Decide(r.Terms(), policy.Situation{})
		return d.Step.Granted(), d.Reason(), nil
	}
	if err != nil {
		return false, "", err
	}
	defer dir.Close()
	return (&Locker{Dir: dir}).DryRun(r)
}

// DryRun says whether the request would be granted now, and why, and touches
// nothing.
func (l *Locker) DryRun(r *locker.Request) (granted bool, reason string, err error) {
	name, now := r.Atom.Name(), r.Clock(time.Now())
	v, err := l.look(r, name, now)
	if err != nil {
		return false, "", err
	}
	defer v.close()
	if v.active != nil {
		v.Changer = v.active.GuardHolder()
		v.Standstill = lockfile.StandsStill(v.Changer, r.Pause)
	}
	s := v.situation()
	var readers []locker.View
	if !r.Shared { // readers do not mind each other
		if readers, err = l.readersOf(name, now, r.Pause); err != nil {
			return false, "", err
		}
	}
	s.Readers = locker.Actives(readers)
	d := locker.Foresee(policy.Decide(r.Terms(), s), &v.View, readers)
	if d.Step.Granted() { // only then is a slot looked for
		if s.Slots, err = l.othersSlots(r); err != nil {
			return false, "", err
		}
		d = locker.Foresee(policy.Decide(r.Terms(), s), &v.View, readers)
	}
	return d.Step.Granted(), d.Reason(), nil
}

// seen is what is to be seen of a lock, also who is changing it, with that pause
// between its signals at most.
func seen(lock *lockfile.Active, now locker.Moment, pause time.Duration) locker.View {
	v := locker.View{Record: lock.Record, Active: activeView(lock, now), Job: lock.Job(), Changer: lock.GuardHolder()}
	v.Standstill = lockfile.StandsStill(v.Changer, pause)
	return v
}

// readersOf is what is to be seen of the readers of the atom NAME.
func (l *Locker) readersOf(name atom.Name, now locker.Moment, pause time.Duration) (readers []locker.View, err error) {
	locks, err := l.Dir.Readers(name)
	if err != nil {
		return nil, err
	}
	for _, lock := range locks {
		reader, err := l.Dir.Lock(lock)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		readers = append(readers, seen(reader, now, pause))
		reader.Close()
		if err := readable(reader); err != nil {
			return nil, err
		}
	}
	return readers, nil
}

// readable is the error where a reader's lock is no lock of a reader.
func readable(reader *lockfile.Active) error {
	if reader.Content != record.Full && reader.Content != record.Empty {
		return damaged(reader)
	}
	return nil
}

// othersSlots is what is to be seen of the slots that the request may not take: nothing
// where its owner has one already. A slot that cannot be read is an error where those
// before it are taken: else it is not looked at.
func (l *Locker) othersSlots(r *locker.Request) (slots []policy.Active, failed error) {
	for n := 1; n <= r.Slots; n++ {
		slot, err := l.Dir.Active(r.Atom.Slot(n))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		v := view{active: slot}
		err = l.slotIsFree(r, &v, n, new(locker.Outcome))
		slot.Close()
		switch {
		case slot.Record.Owner.Same(r.Owner):
			return nil, nil
		case err == errTaken:
			slots = append(slots, v.Active)
		case err != nil && len(slots) == n-1:
			failed = err
		}
	}
	return slots, failed
}
