package lease

import (
	"context"
	"time"

	"adlock/lib/atom"
	"adlock/lib/locker"
	"adlock/lib/policy"
)

const ListTimeout = questionTimeout // for one step of a listing

// Listed is one atom or slot of a store, as it was found.
type Listed struct {
	Name atom.Name
	Snapshot
	Behind []Record    // the places behind the first, in order: other readers that hold the atom, and waiters
	Ticks  []atom.File // the claimed ticks
	Err    error       // why its locks could not be read
}

// List returns every atom, except those of adlock doctor, and every held slot that can be read. It changes no lock.
func (l *Locker) List() (entries []locker.Entry, slots []locker.Slot, err error) {
	found, err := l.Store.List(l.context())
	for i := range found {
		switch f := &found[i]; {
		case isTrial(f.Name): // left by adlock doctor: on FTP its last generation, on etcd the place of a killed adlock doctor
		case !f.Name.IsSlot():
			entries = append(entries, l.entry(f))
		case f.Held && f.Err == nil:
			slots = append(slots, locker.Slot{Name: f.Name, Number: f.Name.SlotNumber(), View: l.viewOf(&f.Snapshot)})
		}
	}
	return entries, slots, err
}

// entry returns the state of an atom that was found. The head of the queue holds the atom. If the head is a
// reader, the readers behind it, up to the first writer, hold the atom too. The others wait.
func (l *Locker) entry(f *Listed) locker.Entry {
	e := locker.Entry{Name: f.Name, Completed: f.Last.Completed, Ticks: f.Ticks, Err: f.Err}
	if f.Err != nil {
		return e
	}
	if e.View = l.viewOf(&f.Snapshot); l.isDeadWaiter(&f.Snapshot) {
		e.View = locker.View{}
	}
	if e.Record.Shared {
		e.Readers, e.View = []locker.View{e.View}, locker.View{}
	}
	for _, behind := range f.Behind {
		next := l.viewOf(&Snapshot{Now: f.Now, Held: true, Owner: behind, Age: f.Now.Sub(behind.Taken)})
		if behind.Shared && len(e.Readers) > 0 && len(e.Waiting) == 0 {
			e.Readers = append(e.Readers, next)
		} else {
			e.Waiting = append(e.Waiting, next)
		}
	}
	now := time.Now()
	last := f.moved(now)
	e.Memory, e.Completed, e.CompletedOn = last.Memory, last.Completed, f.Last.Node
	e.Last = locker.LastView(last, e.Holder().Record.FromStart, locker.Moment{Real: now})
	return e
}

// isDeadWaiter reports whether the head only waits, by its record, and seems dead: a newcomer will pass it.
func (l *Locker) isDeadWaiter(seen *Snapshot) bool {
	return seen.Held && !seen.Bare && seen.Owner.Taken.IsZero() && (seen.Silent || l.ownerOf(seen) == policy.Gone)
}

// viewOf returns the view that any newcomer would get of the active lock in seen; zero if nothing is held.
func (l *Locker) viewOf(seen *Snapshot) (v locker.View) {
	if !seen.Held {
		return v
	}
	v.Active = policy.Active{Held: true, Age: max(0, seen.Age), Empty: seen.Bare}
	if seen.Bare {
		v.Silent, v.Record.Token = seen.Silent, seen.Owner.Token
		return v
	}
	l.describe(&v, seen)
	if v.Active.Owner == policy.Waiter {
		v.Active.Owner = policy.Lives // the head of the queue has the atom, even before its record says so
	}
	return v
}

// Completed returns when the atom last completed (zero: never) and the present, by this machine's clock.
func (l *Locker) Completed(a atom.Atom) (completed, now time.Time, err error) {
	ctx, cancel := context.WithTimeout(l.context(), l.question())
	defer cancel()
	seen, err := l.Store.Look(ctx, a.Name(), false)
	if err == nil {
		err = a.CheckFound(l.Store.String()+" "+string(a.Name()), seen.Last.Memory.Atom)
	}
	if err != nil {
		return time.Time{}, time.Time{}, err
	}
	now = time.Now()
	return seen.moved(now).Completed, now, nil
}
