package atom

import (
	"errors"
	"strconv"
	"time"

	"adlock/lib/exit"
	"adlock/lib/limit"
	"adlock/lib/lock"
	"adlock/lib/name"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/runlog"
)

// record writes an event down. What cannot be recorded is said aloud and
// changes nothing else.
func (k *Keeper) record(e runlog.Event) {
	if k.Log == nil {
		return
	}
	if err := k.Log.Append(e); err != nil {
		exit.Report(err)
	}
}

func event(kind runlog.Kind, a name.Atom, pid int) runlog.Event {
	return runlog.Event{Kind: kind, Program: a.Program, Host: a.Host, Operator: a.Operator, Operand: a.Operand, PID: pid}
}

// event is about the newcomer.
func (r *Request) event(kind runlog.Kind) runlog.Event { return event(kind, r.Atom, r.Owner.PID) }

// outcome is a denial (or Expired), with what was found for the record and for
// waiting.
func (r *Request) outcome(verdict Verdict, step policy.Step, v *View) Outcome {
	o := Outcome{Verdict: verdict, Reason: policy.Reason(step, r.Limits, v.Last, v.Active)}
	r.describe(&o.found, v)
	switch verdict {
	case TooSoon:
		o.found.Age = runlog.Some(v.Last.Age)
		o.recheck = policy.DueIn(r.Limits, v.Last)
	case Busy:
		o.blocker = v.Record.Owner.PID
		o.recheck = policy.Expiry(r.Limits, v.Active) - v.Active.Age
		r.refuseEndless(&o, v)
	}
	return o
}

// refuseEndless: a newcomer inside the job that is in its way would wait for
// itself. Only where it asked to wait without end: a job may have started it
// beside itself, and release first.
func (r *Request) refuseEndless(o *Outcome, v *View) {
	if r.Wait == limit.Never && v.surrounds() {
		o.endless = true
		o.Reason = joined(o.Reason, "to wait without end is refused inside the job that is waited for")
	}
}

// surrounds tells whether this process was started from inside the owner's job.
func (v *View) surrounds() bool {
	switch v.Active.Owner {
	case policy.Ancestor:
		return true
	case policy.Orphaned:
		if v.active != nil {
			_, err := v.active.Job().Members()
			return errors.Is(err, process.ErrAncestor)
		}
	}
	return false
}

// guarded is the denial where somebody else is at the lock: it is being released,
// or its owner is being ended. A guard is never broken, but where its holder
// stands still, and was started longer ago than an ending can take, nobody would
// ever get further: that is said.
func (r *Request) guarded(v *View) (Outcome, error) {
	o := r.outcome(Busy, policy.Busy, v)
	o.Reason = "busy: " + lock.ErrGuarded.Error()
	holder := v.active.GuardHolder()
	if still, age := process.Still(holder); !still || age < 3*r.Pause+guardGrace {
		return o, nil
	}
	o.Verdict = Stuck
	o.Reason = "process " + strconv.Itoa(holder) + ", which is changing the lock, is stopped"
	return o, exit.New(exit.NotPermitted, v.active.Path(), "stuck: "+o.Reason+"; to let it go on: kill -CONT "+strconv.Itoa(holder))
}

// guardGrace is what an ending may take beside its three pauses. Tests change it.
var guardGrace = time.Minute

// describe adds the owner that was found and the limits in force.
func (r *Request) describe(e *runlog.Event, v *View) {
	e.IfElapsed, e.ExpireAfter = runlog.Some(r.Limits.IfElapsed), runlog.Some(r.Limits.ExpireAfter)
	if v.Active.Held {
		e.Owner, e.OwnerToken = v.Record.Owner.PID, v.Record.Token
		e.Age = runlog.Some(v.Active.Age)
	}
}

func (k *Keeper) recordDenial(r *Request, o Outcome, err error, waited time.Duration) {
	kind := runlog.Deny
	switch {
	case o.Verdict == Stuck:
		kind = runlog.Stuck
	case err != nil || o.Verdict == Acquired || o.Verdict == Expired:
		return
	}
	e := r.event(kind)
	e.Verdict, e.Reason, e.Wait = string(o.Verdict), o.Reason, waited
	e.Owner, e.OwnerToken, e.Age = o.found.Owner, o.found.OwnerToken, o.found.Age
	e.IfElapsed, e.ExpireAfter = runlog.Some(r.Limits.IfElapsed), runlog.Some(r.Limits.ExpireAfter)
	k.record(e)
	k.checkStarving(r, o)
}

// joined puts sentences on one line.
func joined(some, more string) string {
	if some == "" || more == "" {
		return some + more
	}
	return some + "; " + more
}

func (k *Keeper) recordAcquire(r *Request, record lock.Record) {
	e := r.event(runlog.Acquire)
	e.Token, e.Reason = record.Token, joined(r.Limits.Warning(), r.Explanation())
	e.IfElapsed, e.ExpireAfter = runlog.Some(r.Limits.IfElapsed), runlog.Some(r.Limits.ExpireAfter)
	k.record(e)
}

// replacedEvent tells that the owner's lock was replaced: a takeover where it
// had to be ended, else a reclaim.
func (r *Request) replacedEvent(step policy.Step, v *View) runlog.Event {
	kind := runlog.Takeover
	if step == policy.Reclaim {
		kind = runlog.Reclaim
	}
	e := r.event(kind)
	r.describe(&e, v)
	return e
}

func (r *Request) signalEvent(v *View, s process.Signalled) runlog.Event {
	e := r.event(runlog.Signal)
	e.Signal, e.Target, e.OwnerToken = s.Signal, s.PID, v.Record.Token
	return e
}

func (r *Request) clockEvent(last policy.Last) runlog.Event {
	e := r.event(runlog.Clock)
	e.Age, e.Reason = runlog.Some(last.Age), "the last lock lies in the future and is not believed"
	return e
}

// RecordSignal tells of a signal that an owner sent to its own job.
func (k *Keeper) RecordSignal(r *Request, s process.Signalled) {
	k.record(r.signalEvent(&View{}, s))
}

func (k *Keeper) recordRelease(r Return, active *lock.Active) {
	held := process.Boottime() - active.Record.Boottime
	if r.Expired {
		e := event(runlog.Expire, active.Record.Atom, active.Record.Owner.PID)
		e.Owner, e.OwnerToken, e.Age = e.PID, active.Record.Token, runlog.Some(held)
		e.ExpireAfter = runlog.Some(active.Record.ExpireAfter)
		k.record(e)
	}
	e := event(runlog.Release, active.Record.Atom, active.Record.Owner.PID)
	e.Token, e.Status, e.Signal = active.Record.Token, r.Status, r.Signal
	e.Duration = runlog.Some(held)
	k.record(e)
}
