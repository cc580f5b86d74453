package locker

import (
	"errors"
	"time"

	"adlock/lib/killer"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/record"
)

// View is what was found of an atom at one moment.
type View struct {
	Last   policy.Last
	Active policy.Active
	Memory record.Memory
	Record record.Record // of the active lock, where one is held and has a record
	Job    process.Job   // of its owner, where that can be ended from here
	Node   string        // the machine of its owner, where that may be another one
	Silent bool          // its owner may be dead: by the clocks it has given no sign of life for its lease

	TickUsed bool // the tick that is asked for was claimed

	Changer    int   // pid of the process that is changing the active lock just now (only for callers that take nothing); 0: none is known
	Standstill error // why that one does not come to an end; nil: it does, as far as is known
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

// Foresee is the decision as it would turn out about the lock that has decided: the
// active one, or a reader's. No process is signalled.
func Foresee(d policy.Decision, active *View, readers []View) policy.Decision {
	v := active
	if d.Reader >= 0 {
		v = &readers[d.Reader]
	}
	changes := d.Step == policy.Expire || d.Step == policy.Reclaim || d.Step == policy.Unempty
	switch {
	case changes && v.Standstill != nil:
		return d.Because(policy.Stuck, v.Standstill.Error())
	case changes && v.Changer != 0: // left to that one
		return d.Because(policy.Busy, ErrGuarded.Error())
	case d.Step == policy.Expire && v.Node == "":
		return v.foreseeEnd(d)
	}
	return d
}

// foreseeEnd: an owner that is to be ended may be one that cannot be, or may have
// started this very process. (One in a store ends its job itself, when it is asked to.)
func (v *View) foreseeEnd(d policy.Decision) policy.Decision {
	switch _, err := killer.Members(v.Job); {
	case errors.Is(err, killer.ErrAncestor):
		return d.With(policy.Busy)
	case err != nil:
		return d.Because(policy.Stuck, err.Error())
	}
	return d
}

// Moment is the time that ages are counted to.
type Moment struct {
	Real  time.Time // by the clock that stamps the last lock: the file system's, or the store's
	Fixed time.Time // the pass clock; zero: none
}

// Effective is the 'now' of both decisions: the pass clock where there is one.
func (m Moment) Effective() time.Time {
	if m.Fixed.IsZero() {
		return m.Real
	}
	return m.Fixed
}

// ViewOf is what there is to decide on, of a last lock that was read at that moment.
// The limits that are learned are put in force.
func (r *Request) ViewOf(last record.Last, now Moment) View {
	r.Resolve(last.Memory.Learned)
	return View{Memory: last.Memory, Last: LastView(last, r.FromStart, now)}
}

// LastView is what a last lock means at that moment.
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

// OwnerOf says what this machine knows of the owner of a job.
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
