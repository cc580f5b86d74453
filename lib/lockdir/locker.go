// Package lockdir carries out the protocol (protocol.md): it takes an atom, releases it, ends an expired
// owner and replaces its lock. Package policy decides what to do; the steps here keep that decision true
// while other newcomers are at work:
//   - if several newcomers find one stale lock, one of them replaces it, and the others are denied;
//   - an owner that releases while it is being ended finds the guard taken and changes nothing;
//   - a newcomer that was stopped at any step notices later if another file or token is there, and checks again.
package lockdir

import (
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/policy"
)

// Locker takes and releases the atoms of one lock directory. Several goroutines may use it.
type Locker struct {
	Dir *lockfile.Dir
	locker.Recorder
}

var _ locker.Locker = (*Locker)(nil)

// Open opens the lock directory at path, making it on first use.
func Open(path string, rec locker.Recorder) (*Locker, error) {
	dir, err := lockfile.Create(path)
	if err != nil {
		return nil, err
	}
	if rec.Log != nil {
		rec.Log.Checked()
	}
	return &Locker{Dir: dir, Recorder: rec}, nil
}

type view struct {
	locker.View
	active  *lockfile.Active // nil: there is none, or it was not read
	noLast  bool             // there is no last lock yet
	readers []view           // the readers' locks, up to the first that denies the atom
	slots   []view           // the slots that other owners hold
	full    locker.Outcome   // the outcome if other owners hold as many slots as the newcomer allows
}

func (v *view) close() {
	if v.active != nil {
		v.active.Close()
	}
}

func (v *view) decide(t policy.Terms) policy.Decision {
	return policy.Decide(t, policy.Situation{Last: v.Last, Active: v.Active, Readers: actives(v.readers), Slots: actives(v.slots), TickUsed: v.TickUsed, Pause: v.Pause})
}

func actives(views []view) (all []policy.Active) {
	for _, v := range views {
		all = append(all, v.Active)
	}
	return all
}

// decider returns the view of the reader's lock that led to the decision, or v if no reader's lock did.
func (v *view) decider(d policy.Decision) *view {
	if d.Reader >= 0 {
		return &v.readers[d.Reader]
	}
	return v
}

func (v *view) inWay(d policy.Decision) (all lockfile.InWay) {
	locks := []view{*v.decider(d)}
	if d.Step == policy.Full {
		locks = v.slots
	}
	all.Line = d.Step == policy.Busy && d.Reader < 0 && v.active != nil
	for _, lock := range locks {
		if lock.active != nil {
			all.Add(lock.active, lock.Active)
		}
	}
	return all
}
