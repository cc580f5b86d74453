package lease

import (
	"context"
	"errors"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/learn"
	"adlock/lib/locker"
	"adlock/lib/process"
)

// What an atom has learned is in its last lock, as in a lock directory. Only its owner writes
// that, and writes the lessons of a run with its stamp, at the end: what was there when it came
// to own the atom has not changed. Several readers may hold the atom: each looks again at its
// end, and if two end at the same moment, one lesson may be lost.

// lesson changes what an atom has learned.
type lesson func(*learn.State)

// learnFromAsking learns from how often this host has asked for the atom too soon since it last
// completed, on any machine.
func (l *Locker) learnFromAsking(r *locker.Request, t *heldLease) {
	if !r.Auto.IfElapsed || l.Log == nil {
		return
	}
	tooSoon := l.AskedTooSoon(r.Atom, t.before.Completed)
	t.lessons = append(t.lessons, func(s *learn.State) { s.Asked(tooSoon) })
	if s := r.Learned; s.Asked(tooSoon) {
		r.Resolve(s)
	}
}

// learnFromRelease learns from success, as only that tells how long a run takes. A run that was
// ended at its limit, by its own supervisor or at a newcomer's request, had all the time that it
// was granted. A run that was ended sooner, or whose end is unknown, teaches nothing.
func (t *heldLease) learnFromRelease(r locker.ReleaseRequest) {
	held := process.Boottime() - t.record.Boottime
	switch {
	case !t.record.Learn, r.Untold:
	case r.Expired, r.Asked && held >= t.record.ExpireAfter:
		t.lessons = append(t.lessons, func(s *learn.State) { s.Ended(held) })
	case r.Asked, r.NoStamp, t.ended.Load():
	case r.Signal == "" && r.Status.Value == 0:
		t.lessons = append(t.lessons, func(s *learn.State) { s.Succeeded(held) })
	}
}

// leaves is the last lock that this acquisition leaves, with what its run has taught: that of a
// completed run, or of a run that does not count; nil to keep the present one.
func (t *heldLease) leaves(r locker.ReleaseRequest) *Last {
	t.learnFromRelease(r)
	last := t.before
	if t.record.Shared {
		last = t.lookAgain()
	}
	known := last.Memory.Learned
	for _, teach := range t.lessons {
		teach(&last.Memory.Learned)
	}
	if !r.NoStamp {
		stamp := t.stamp()
		stamp.keep(last)
		return stamp
	}
	if last.Memory.Learned == known {
		return nil
	}
	last.Kept = true
	return &last
}

// lookAgain is the last lock now or, if it cannot be read, as it was.
func (t *heldLease) lookAgain() Last {
	ctx, cancel := context.WithTimeout(t.ctx, questionTimeout)
	defer cancel()
	if seen, err := t.place.Look(ctx); err == nil {
		return seen.Last
	}
	return t.before
}

// keep takes from the last lock before what a run does not change.
func (l *Last) keep(before Last) {
	kept := before.Memory
	kept.Atom, kept.Started = l.Memory.Atom, l.Memory.Started
	l.Memory = kept
}

// Forget makes the atom NAME forget what it has learned, holding it for that moment. It is
// refused (fault.Denied) while the atom is held: the owner would write back what it has read.
func (l *Locker) Forget(name atom.Name) error {
	own, err := forMoment(name)
	if err != nil {
		return err
	}
	held, giveUp := context.WithTimeout(l.context(), DefaultLease)
	defer giveUp()
	ctx, cancel := context.WithTimeout(held, l.question())
	defer cancel()
	place, seen, err := l.Store.Enter(ctx, name, own, DefaultLease, false)
	if err != nil {
		return err
	}
	object := l.Store.String() + " " + string(name)
	if place == nil {
		return fault.New(fault.Denied, object, "is held: it can forget when that has ended")
	}
	last := seen.Last
	last.Memory.Learned, last.Kept = learn.State{}, true
	err = l.once(held, func(ctx context.Context) error { return place.Leave(ctx, &last) })
	if errors.Is(err, ErrGone) {
		return fault.New(fault.Denied, object, "has changed hands meanwhile")
	}
	return err
}

// forMoment is the record of an atom that this process holds for no longer than a
// question takes: its lease is not renewed.
func forMoment(name atom.Name) (Record, error) {
	a, _ := name.Atom() // zero: unknown
	own, err := locker.MomentaryRecord(a)
	if err != nil {
		return Record{}, err
	}
	node, err := NodeName()
	return Record{Record: own, Node: node, Taken: time.Now(), Lease: DefaultLease}, err
}
