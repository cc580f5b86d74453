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
	Job    process.Job   // the job of its owner; zero in a store, where only the owner can end it
	Node   string        // the machine of its owner, if that may be another one
	Whose  int           // the user of the lock directory, if root reads another user's; 0: this user
	Silent bool          // its owner, in a store, may be dead: the last heartbeat seems older than the lease

	Restored bool // a backup has brought the lock here

	File string // not "": the view is of this file, which the run locks beside its atom, not of a lock

	TickUsed bool // the requested tick was claimed
	Pause    policy.Pause

	Watcher    int   // set in a list: pid of the newcomer that watches whether the job works; 0: none, or unknown
	Changer    int   // set in a list or a dry run: pid of the process that is changing the lock; 0: none, or unknown
	Standstill error // why the Changer will not finish; nil: no reason is known
}

// Since returns when the active lock was made. now is the time of the view.
func (v *View) Since(now time.Time) time.Time { return now.Add(-v.Active.Age - v.Record.Slept()) }

// IsInsideJob reports whether this process was started from inside the owner's job.
func (v *View) IsInsideJob() bool {
	switch v.Active.Owner {
	case policy.Ancestor:
		return true
	case policy.Orphaned:
		_, err := killer.Members(v.Job)
		return errors.Is(err, killer.ErrAncestor)
	}
	return false
}

// Foresee returns d, or what acting on d would lead to: Stuck, Busy or Reclaim. It signals no process.
func (v *View) Foresee(d policy.Decision) policy.Decision {
	changes := d.Step == policy.Expire || d.Step == policy.Reclaim || d.Step == policy.Unempty
	switch {
	case changes && v.Standstill != nil:
		return d.Because(policy.Stuck, v.Standstill.Error())
	case changes && v.Changer != 0 && v.Changer != v.Record.Owner.PID && !d.Preempts(): // an owner changes its own lock only for a moment
		return d.Because(policy.Busy, ErrGuarded.Error())
	case d.Step == policy.Expire && v.Node == "":
		return v.foreseeEnd(d)
	case d.Step == policy.Busy && v.Silent && v.Active.Owner != policy.Ancestor:
		return d.Because(policy.Reclaim, silent)
	}
	return d
}

const silent = "its owner has given no sign of life for its whole lease; it would be watched for as long, and replaced if it stays silent"

// foreseeEnd returns d, or Busy or Stuck if the job cannot be ended. (An owner in a store ends its own job.)
func (v *View) foreseeEnd(d policy.Decision) policy.Decision {
	switch err := killer.Endable(v.Job); {
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

// Effective returns the 'now' by which IfElapsed and ExpireAfter are judged.
func (m Moment) Effective() time.Time {
	if m.Fixed.IsZero() {
		return m.Real
	}
	return m.Fixed
}

// SeeLast adds what the last lock says to v, and puts the learned limits of r in force. object names the lock
// in an error. used reports whether the tick was claimed; it is called only if the request has a tick.
func (v *View) SeeLast(r *Request, object string, last record.Last, now Moment, used func() (bool, error)) (err error) {
	if err := r.Atom.CheckFound(object, last.Memory.Atom); err != nil {
		return err
	}
	r.Resolve(last.Memory.Learned)
	v.Memory, v.Last = last.Memory, LastView(last, r.FromStart, now)
	v.Last.Newer = r.isOlderThan(last.Memory.Newest)
	if r.Tick.Asked() {
		v.TickUsed, err = used()
	}
	return err
}

// SeeOwner adds the record of the active lock, and the state of its owner, to v.
func (v *View) SeeOwner(own record.Record, owner policy.Owner) {
	v.Record, v.Active.Owner = own, owner
	v.Active.Asked, v.Active.Source, v.Active.Patience = own.ExpireAfter, own.Source, own.Patience
}

// LastView returns what a last lock says. With fromStart, Age counts from the start of the last run, if that is known.
func LastView(last record.Last, fromStart bool, now Moment) policy.Last {
	if last.Completed.IsZero() {
		return policy.Last{Damaged: last.Damaged}
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

// OwnerOf returns the state of a job's owner, as far as this machine can find it out.
func OwnerOf(job process.Job) policy.Owner { return OwnerIf(job, func() bool { return true }) }

// OwnerIf is OwnerOf, but searches for the rest of a dead owner's job only if stands says that the lock still
// exists: many newcomers read a lock just before its owner releases it and exits.
func OwnerIf(job process.Job, stands func() bool) policy.Owner {
	switch job.Owner.Life() {
	case process.Unknown:
		return policy.Unknown
	case process.Alive:
		if process.IsAncestor(job.Owner.PID) {
			return policy.Ancestor
		}
		return policy.Lives
	}
	if stands() && job.Remains() {
		return policy.Orphaned
	}
	return policy.Gone
}
