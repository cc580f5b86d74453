package lease

import (
	"context"
	"errors"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/learn"
	"adlock/lib/locker"
)

// What an atom has learned is in its last lock, as in a lock directory. While the atom has a living owner, only
// the owner writes the last lock, at the end of its run, and adds the lessons of the run then. So the last lock
// has not changed since the owner read it when it acquired the atom. Several readers hold an atom at once: each
// reads the last lock again at its end, and if two end at the same moment, one lesson may be lost.

func (l *Locker) learnFromAsking(r *locker.Request, t *heldLease) {
	lesson := l.LessonOfAsking(r, t.before.Completed)
	t.lessons = append(t.lessons, lesson)
	if r.Learned.Heed(lesson) {
		r.Resolve(r.Learned)
	}
}

// leaves returns the last lock that this acquisition leaves, with the lessons of its run; nil if
// nothing is to be written. If the run does not count, the last lock keeps its earlier time.
func (t *heldLease) leaves(r locker.ReleaseRequest) *Last {
	run := r
	run.NoStamp = r.NoStamp || t.ended.Load() // the lease ran out or was gone: the runtime teaches nothing
	t.lessons = append(t.lessons, run.Lesson(t.record.Record))
	last := t.before
	if t.record.Shared {
		last = t.lookAgain()
	}
	learned := last.Memory.Learned.Heed(t.lessons...)
	if !r.NoStamp {
		stamp := t.stamp()
		stamp.keep(last)
		return stamp
	}
	if !learned {
		return nil
	}
	last.Kept = true
	return &last
}

func (t *heldLease) lookAgain() Last {
	ctx, cancel := context.WithTimeout(t.ctx, questionTimeout)
	defer cancel()
	if seen, err := t.place.Look(ctx); err == nil {
		return seen.Last
	}
	return t.before
}

func (l *Last) keep(before Last) {
	kept := before.Memory
	kept.Atom, kept.Started = l.Memory.Atom, l.Memory.Started
	l.Memory = kept
}

// Forget deletes what the atom NAME has learned, and holds the atom while it does so. It refuses (fault.Denied) while
// another process holds the atom or is in its queue: that process would write back what it has read.
func (l *Locker) Forget(name atom.Name) error {
	own, err := forMoment(name)
	if err != nil {
		return err
	}
	held, giveUp := context.WithTimeout(l.context(), DefaultLease)
	defer giveUp()
	ctx, cancel := context.WithTimeout(held, l.question())
	defer cancel()
	place, seen, err := l.Store.Enter(ctx, name, own, false)
	if err != nil {
		return err
	}
	object := l.Store.String() + " " + string(name)
	if place == nil {
		return fault.New(fault.Denied, object, "is held: try again when its owner has ended")
	}
	last := seen.Last
	last.Memory.Learned, last.Kept = learn.State{}, true
	err = l.once(held, func(ctx context.Context) error { return place.Leave(ctx, &last) })
	if errors.Is(err, ErrGone) {
		return fault.New(fault.Denied, object, "has changed hands meanwhile")
	}
	if err != nil {
		_ = l.once(held, func(ctx context.Context) error { return place.Leave(ctx, nil) }) // if it fails, its lease runs out
	}
	return err
}

// forMoment returns a record for an atom that this process holds for less than a lease.
func forMoment(name atom.Name) (Record, error) {
	a, _ := name.Atom() // zero if NAME has a checksum
	own, err := locker.MomentaryRecord(a)
	if err != nil {
		return Record{}, err
	}
	node, err := NodeName()
	return Record{Record: own, Node: node, Taken: time.Now(), Lease: DefaultLease}, err
}
