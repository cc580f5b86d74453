package atom

import (
	"errors"
	"time"

	"adlock/lib/exit"
	"adlock/lib/lock"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/runlog"
)

// What a locker beyond this machine (package store) has in common with Keeper:
// the views that policy decides on, the outcomes, the waiting, the record.

// ViewOf is what there is to decide on, of a last lock that was read when the
// store's own clock stood at now.
func (r *Request) ViewOf(last lock.Last, now time.Time) View {
	r.resolve(last.Memory.Learned)
	return View{Memory: last.Memory, stamp: last.Completed, Last: lastView(last, r.FromStart, moment{real: now, fixed: r.Now})}
}

// OwnerOf says what this machine knows of the owner in the record.
func OwnerOf(record lock.Record) policy.Owner { return ownerOf(record.KnownJob(-1)) }

// Deny is the outcome of a step that does not take the atom.
func (r *Request) Deny(step policy.Step, v *View) Outcome {
	if step == policy.TooSoon {
		return r.outcome(TooSoon, step, v)
	}
	return r.outcome(Busy, step, v)
}

// Stuck is the outcome, and the error, where the owner in v has expired and
// cannot be ended; object is the lock.
func (r *Request) Stuck(object string, v *View, why error) (Outcome, error) {
	outcome := r.outcome(Stuck, policy.Stuck, v)
	outcome.Reason = why.Error()
	return outcome, exit.New(exit.NotPermitted, object, "stuck: "+why.Error())
}

// Recheck is after which time another look is worthwhile, whatever else
// happens: the atom is due, the owner expires. 0: not known.
func (o Outcome) Recheck() time.Duration { return o.recheck }

// Waiting is the waiting of one newcomer, who is woken by somebody else.
type Waiting struct{ w *waiting }

// NewWaiting begins to count; it waits for nothing yet.
func NewWaiting(r *Request) Waiting { return Waiting{newWaiting(nil, r)} }

// Worthwhile reports whether the outcome may be another one before the time is up.
func (w Waiting) Worthwhile(o Outcome) bool { return w.w.worthwhile(o) }

// Left is how long the newcomer still wants to wait; at most 0: not at all.
func (w Waiting) Left() time.Duration {
	if w.w.r.Wait == 0 {
		return 0
	}
	return w.w.left()
}

// Spent is how long the newcomer has waited.
func (w Waiting) Spent() time.Duration {
	if w.w.r.Wait == 0 {
		return 0
	}
	return process.Boottime() - w.w.began
}

// Scribe writes the record of a locker that is no Keeper.
type Scribe struct{ keeper Keeper }

// NewScribe returns a Scribe that writes to log.
func NewScribe(log *runlog.Log) Scribe { return Scribe{Keeper{Log: log}} }

// Acquired records that the atom was taken under the record.
func (s Scribe) Acquired(r *Request, record lock.Record) { s.keeper.recordAcquire(r, record) }

// Denied records a denial, if it is one.
func (s Scribe) Denied(r *Request, o Outcome, err error, waited time.Duration) {
	s.keeper.recordDenial(r, o, err, waited)
}

// Expiring records that the owner in v has passed ExpireAfter and is to be ended.
func (s Scribe) Expiring(r *Request, v *View) {
	e := r.event(runlog.Expire)
	r.describe(&e, v)
	s.keeper.record(e)
}

// Replaced records that the owner in v has made way: a takeover where it had to
// be ended, else a reclaim.
func (s Scribe) Replaced(r *Request, step policy.Step, v *View) {
	s.keeper.record(r.replacedEvent(step, v))
}

// Emptied records that a lock which never said whose it is was passed.
func (s Scribe) Emptied(r *Request, v *View) {
	e := r.event(runlog.Empty)
	e.Age = runlog.Some(v.Active.Age)
	s.keeper.record(e)
}

// Clock records that the last lock lies in the future.
func (s Scribe) Clock(r *Request, v *View) { s.keeper.record(r.clockEvent(v.Last)) }

// RecordSignal tells of a signal that an owner sent to its own job.
func (s Scribe) RecordSignal(r *Request, sent process.Signalled) { s.keeper.RecordSignal(r, sent) }

// Released records the end of the acquisition in the record.
func (s Scribe) Released(r Return, record lock.Record) {
	s.keeper.recordRelease(r, &lock.Active{Record: record})
}

// Lost records that the acquisition in the record came to nothing, and returns
// the error that says so: 75, as Keeper.Release has it.
func (s Scribe) Lost(object string, record lock.Record, why error) error {
	e := event(runlog.Lost, record.Atom, record.Owner.PID)
	e.Token, e.Reason = record.Token, why.Error()
	s.keeper.record(e)
	return &exit.Error{Code: exit.Denied, Object: object, Err: errors.Join(errors.New("lost"), why)}
}
