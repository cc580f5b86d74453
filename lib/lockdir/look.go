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

// look reads both locks and writes nothing. A missing last lock means that the atom never
// completed. The learned limits of r are put in force. The caller closes the view.
func (l *Locker) look(r *locker.Request, name atom.Name, now locker.Moment) (view, error) {
	v := view{}
	err := l.lookAtLast(&v, r, name, now)
	if err == nil && policy.Due(r.Limits, v.Last) { // otherwise it is denied, whatever the active lock says
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
	if err := process.Readable(); err != nil {
		return fault.Wrap(active.Path(), err)
	}
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

// setActive fills the view from the active lock.
func (v *view) setActive(now locker.Moment) {
	active := v.active
	v.Record, v.Active, v.Job = active.Record, activeView(active, now), active.Job()
}

func damaged(active *lockfile.Active) error {
	return fault.New(fault.IO, active.Path(), "is cut short, too large or of an unknown format; if you know that its owner is dead: adlock clear "+active.File.Called())
}

func activeView(active *lockfile.Active, now locker.Moment) policy.Active {
	view := policy.Active{Held: true, Age: active.Age(now)}
	switch active.Content {
	case record.Empty:
		view.Empty, view.Age = true, now.Real.Sub(active.Modified())
	case record.PIDOnly:
		view.Owner = policy.Untouched
		if !process.PIDLives(active.Record.Owner.PID) {
			view.Owner = policy.Gone
		}
	default:
		view.Asked, view.Source, view.Patience = active.Record.ExpireAfter, active.Record.Source, active.Record.Patience
		view.Owner = locker.OwnerOf(active.Job())
		view.Entering = active.Record.Shared && view.Owner == policy.Lives && process.Boottime()-active.Record.Boottime < entering
	}
	return view
}

// DryRun is Locker.DryRun for the directory at path; a missing directory counts as one without
// locks.
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

// DryRun says whether the request would be granted now, and why, and changes nothing.
func (l *Locker) DryRun(r *locker.Request) (granted bool, reason string, err error) {
	d, err := l.Foresee(r)
	if err != nil {
		return false, "", err
	}
	if d.Step.Granted() {
		if outcome, err := l.unlessUnlocked(r.Atom.Name()); err != nil || outcome.Verdict != locker.Acquired {
			return false, outcome.Reason, err
		}
	}
	return d.Step.Granted(), d.Reason(), nil
}

// Foresee is what the request would come to now, except for an unlocked run in the way; it
// changes nothing.
func (l *Locker) Foresee(r *locker.Request) (d policy.Decision, err error) {
	name, now := r.Atom.Name(), r.Clock(time.Now())
	v, err := l.look(r, name, now)
	if err != nil {
		return d, err
	}
	defer v.close()
	if v.active != nil {
		v.Changer = v.active.GuardHolder()
		v.Standstill = lockfile.StandsStill(v.Changer, r.Pause)
	}
	s := v.situation()
	var readers []locker.View
	if !r.Shared { // readers do not exclude each other
		if readers, err = l.readersOf(name, now, r.Pause); err != nil {
			return d, err
		}
	}
	s.Readers = locker.Actives(readers)
	d = locker.Foresee(policy.Decide(r.Terms(), s), &v.View, readers)
	if d.Step.Granted() { // slots are looked for only then
		slots, err := l.othersSlots(r, new(locker.Outcome))
		if err != nil {
			return d, err
		}
		for _, slot := range slots {
			s.Slots = append(s.Slots, slot.Active)
		}
		d = locker.Foresee(policy.Decide(r.Terms(), s), &v.View, readers)
	}
	return d, nil
}

// lookAhead looks for readers and slots in a waiter's way before the waiter links its own lock,
// which would keep others out and wake them for nothing. It only saves work: if it finds nothing,
// its outcome is Acquired, and settle looks again under that lock. What has to be ended, cleared
// or reported it leaves to settle too.
//
// No wake-up is lost. The watch was there before this look, and the waiter waits only for
// files that this look has seen. A file, or its owner, that goes
//   - before the look is not in the way;
//   - between the look and Wait is in the queue of events, or its pid has no process;
//   - later ends the Wait.
//
// An event that a Wait has discarded is of a file that went before the next look.
func (l *Locker) lookAhead(r *locker.Request, name atom.Name, w *lockfile.Waiting) (locker.Outcome, error) {
	if !w.Watches() {
		return granted()
	}
	if outcome, err := l.unlessUnlocked(name); err != nil || outcome.Verdict != locker.Acquired {
		return outcome, err
	}
	if !r.Shared {
		if outcome, err := l.lookForReaders(r, name, w); err != nil || outcome.Verdict != locker.Acquired {
			return outcome, err
		}
	}
	full := r.Full()
	slots, err := l.othersSlots(r, &full)
	if err != nil || r.Slots == 0 || len(slots) < r.Slots {
		return locker.Outcome{Verdict: locker.Acquired}, err
	}
	if shared, err := l.supervisorHasSlot(r); shared || err != nil {
		return locker.Outcome{Verdict: locker.Acquired}, err
	}
	for _, slot := range slots {
		w.InWay.Add(slot.active, slot.Active)
	}
	return full, nil
}

// lookForReaders is the part of lookAhead for a writer: the first reader that denies it the atom
// is in its way.
func (l *Locker) lookForReaders(r *locker.Request, name atom.Name, w *lockfile.Waiting) (locker.Outcome, error) {
	readers, err := l.Dir.Readers(name)
	if err != nil {
		return locker.Outcome{}, err
	}
	for _, lock := range readers {
		v, d, err := l.lookAtReader(r, lock)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return locker.Outcome{}, err
		}
		v.close()
		if d.Step == policy.Busy {
			w.InWay.Add(v.active, v.Active)
			return r.Denied(d, &v.View), nil
		}
	}
	return granted()
}

// seen is the view of a lock, including the process that is changing it, whose signals are at
// most pause apart.
func seen(lock *lockfile.Active, now locker.Moment, pause time.Duration) locker.View {
	v := locker.View{Record: lock.Record, Active: activeView(lock, now), Job: lock.Job(), Changer: lock.GuardHolder()}
	v.Standstill = lockfile.StandsStill(v.Changer, pause)
	return v
}

// readersOf is the view of each reader of the atom NAME.
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

// readable is the error where a reader's lock holds neither a record nor nothing.
func readable(reader *lockfile.Active) error {
	if reader.Content != record.Full && reader.Content != record.Empty {
		return damaged(reader)
	}
	return nil
}

// othersSlots returns the slots that the request may not take; none if its owner already has one.
// A slot that cannot be read is an error if all slots before it are taken; otherwise it is
// ignored. othersSlots adds to full what to say of the slots' owners. The locks in the views are
// closed.
func (l *Locker) othersSlots(r *locker.Request, full *locker.Outcome) (slots []view, failed error) {
	for n := 1; n <= r.Slots; n++ {
		slot, err := l.Dir.Active(r.Atom.Slot(n))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		v := view{active: slot}
		err = l.slotIsFree(r, &v, n, full)
		slot.Close()
		switch {
		case slot.Record.Owner.Same(r.Owner):
			return nil, nil
		case err == errTaken:
			slots = append(slots, v)
		case err != nil && len(slots) == n-1:
			failed = err
		}
	}
	return slots, failed
}
