package locker

import (
	"errors"
	"time"

	"adlock/lib/killer"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/record"
)

// View is an atom as seen at one moment.
type View struct {
	Last   policy.Last
	Active policy.Active
	Memory record.Memory
	Record record.Record // of the active lock, if one is held and has a record
	Job    process.Job   // of its owner, if it can be ended from here
	Node   string        // the machine of its owner, if that may be another one
	Silent bool          // its owner may be dead: by the clocks its last heartbeat is older than its lease

	TickUsed bool // the requested tick was claimed

	Changer    int   // pid of the process that is changing the active lock now (only for looks that take nothing); 0: none known
	Standstill error // why that process does not finish; nil: it does, as far as is known
}

// isInsideJob tells whether this process was started from inside the owner's job.
func (v *View) isInsideJob() bool {
	switch v.Active.Owner {
	case policy.Ancestor:
		return true
	case policy.Orphaned:
		_, err := killer.Members(v.Job)
		return errors.Is(err, killer.ErrAncestor)
	}
	return false
}

// Foresee is the decision as it would turn out for the lock that decided: the active one, or a
// reader's. It signals no process.
func Foresee(d policy.Decision, active *View, readers []View) policy.Decision {
	v := active
	if d.Reader >= 0 {
		v = &readers[d.Reader]
	}
	changes := d.Step == policy.Expire || d.Step == policy.Reclaim || d.Step == policy.Unempty
	switch {
	case changes && v.Standstill != nil:
		return d.Because(policy.Stuck, v.Standstill.Error())
	case changes && v.Changer != 0: // left to that process
		return d.Because(policy.Busy, ErrGuarded.Error())
	case d.Step == policy.Expire && v.Node == "":
		return v.foreseeEnd(d)
	}
	return d
}

// foreseeEnd finds out whether an owner to be ended could be ended, or has started this very
// process. (An owner in a store ends its job itself, when asked.)
func (v *View) foreseeEnd(d policy.Decision) policy.Decision {
	switch _, err := killer.Members(v.Job); {
	case errors.Is(err, killer.ErrAncestor):
		return d.With(policy.Busy)
	case err != nil:
		return d.Because(policy.Stuck, err.Error())
	}
	return d
}

// Moment is the time up to which ages are counted.
type Moment struct {
	Real  time.Time // by the clock that stamps the last lock: the file system's, or the store's
	Fixed time.Time // the pass clock; zero: none
}

// Effective is the 'now' of both decisions: the pass clock if there is one.
func (m Moment) Effective() time.Time {
	if m.Fixed.IsZero() {
		return m.Real
	}
	return m.Fixed
}

// ViewOf is what to decide on, with a last lock that was read at that moment. The learned limits
// are put in force.
func (r *Request) ViewOf(last record.Last, now Moment) View {
	r.Resolve(last.Memory.Learned)
	return View{Memory: last.Memory, Last: LastView(last, r.FromStart, now)}
}

// LastView is the meaning of a last lock at that moment.
func LastView(last record.Last, fromStart bool, now Moment) policy.Last {
	if last.Completed.IsZero() {
		return policy.Last{}
	}
	view := policy.Last{
		Completed: true,
		Age:       now.Effective().Sub(last.Completed),
		Future:    last.Completed.Sub(now.Real) > policy.FutureSlack,
	}
	if started := last.Memory.Started; fromStart && !started.IsZero() && !started.After(last.Completed) {
		view.Age, view.FromStart = now.Effective().Sub(started), true
	}
	if view.Age > 0 {
		view.Age = max(0, view.Age-last.Cut)
	}
	return view
}

// OwnerOf tells what this machine knows of the owner of a job.
func OwnerOf(job process.Job) policy.Owner {
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
	return policy.Gone
}
