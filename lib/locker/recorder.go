package locker

import (
	"iter"
	"os"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/hook"
	"adlock/lib/killer"
	"adlock/lib/policy"
	"adlock/lib/record"
	"adlock/lib/runlog"
)

// Recorder writes the actions of a locker to the runlog, and reports what a person should know (news.go). A
// runlog that cannot be written is reported once, and changes nothing else.
type Recorder struct {
	Log  *runlog.Log // nil: nothing is written
	Hook *hook.Hook  // nil: no hook is started
}

func (rec Recorder) append(e runlog.Event) (logged bool) {
	if rec.Log == nil {
		return false
	}
	err := rec.Log.Append(e)
	if err != nil && rec.Log.FirstTrouble() {
		text := unwritten(e.Kind, fault.Wrap(rec.Log.Dir, err))
		fault.Warn(titleOf(e), text)
		rec.tellHook(hook.Unwritten, e, text)
	}
	return err == nil
}

func unwritten(kind runlog.Kind, err error) string {
	text := "the runlog is not written: " + fault.OneLine(err.Error())
	if kind == runlog.Acquire {
		return "runs, but " + text
	}
	return text
}

func event(kind runlog.Kind, a atom.Atom, pid int) runlog.Event {
	return runlog.Event{Kind: kind, Program: a.Program, Host: a.Host, Operator: a.Operator, Operand: a.Operand, PID: pid}
}

func (r *Request) event(kind runlog.Kind) runlog.Event { return event(kind, r.Atom, r.Owner.PID) }

func (r *Request) eventOf(kind runlog.Kind, v *View) runlog.Event {
	e := r.event(kind)
	r.describe(&e, v)
	return e
}

func (r *Request) describe(e *runlog.Event, v *View) {
	r.describeLimits(e, v.Active)
	if v.Active.Held {
		e.Owner, e.OwnerNode, e.OwnerToken = v.Record.Owner.PID, v.Node, v.Record.Token
		e.Age = runlog.Some(v.Active.Age)
	}
}

func (r *Request) describeLimits(e *runlog.Event, active policy.Active) {
	expireAfter, source := policy.InForce(r.Limits, active)
	e.IfElapsed, e.ExpireAfter, e.ExpireAfterFrom = runlog.Some(r.Limits.IfElapsed), runlog.Some(expireAfter), string(source)
	e.FromStart, e.OncePer = r.FromStart, r.Tick.Period
	if r.Auto.IfElapsed {
		e.IfElapsedFrom = string(policy.Learned)
	}
}

// Missing logs, and notifies the hook, that the job's command cannot be run, and why. status is adlock's exit status.
func (rec Recorder) Missing(r *Request, status int, why error) {
	e := r.event(runlog.Missing)
	e.Status, e.Reason = runlog.Some(status), why.Error()
	rec.append(e)
	rec.tellHook(hook.Fail, e, "cannot be run: "+e.Reason)
}

// Acquired logs, and notifies the hook, that the atom was taken, with the record own in its lock.
func (rec Recorder) Acquired(r *Request, own record.Record) {
	e := r.event(runlog.Acquire)
	e.Token, e.Shared, e.Reason = own.Token, own.Shared, joined(r.Limits.Warning(), r.Explanation())
	r.describeLimits(&e, policy.Active{Asked: own.ExpireAfter, Source: own.Source})
	rec.append(e)
	rec.tellHook(hook.Start, e, "started")
}

// LogIfDenied logs a denial or Stuck and the time waited, reports what a person should know, and ignores the rest.
func (rec Recorder) LogIfDenied(r *Request, o Outcome, err error, waited time.Duration) {
	kind := runlog.Deny
	switch {
	case o.Verdict == Stuck:
		kind = runlog.Stuck
	case err != nil || o.Verdict == Acquired || o.Verdict == Expired:
		return
	}
	e := r.refused(kind, o, waited)
	if r.Inside(o) {
		rec.keptOut(e, &o.inWay)
		return
	}
	if o.Verdict == Paused {
		rec.deniedByPause(r.Atom.Name(), &e, o.inWay.Pause)
		return
	}
	if rec.Log != nil && (o.Verdict == Busy || o.Verdict == Full) {
		e.Count = rec.denials(r.Atom) + 1
	}
	rec.append(e)
	switch {
	case kind == runlog.Stuck:
		rec.tellHook(hook.Stuck, e, "stuck: "+o.Reason)
	case o.Verdict == Full && alarming(e.Count, r.Starving):
		rec.starving(e)
	}
}

// Waits logs that the newcomer waits from now on.
func (rec Recorder) Waits(r *Request, o Outcome) { rec.append(r.refused(runlog.Wait, o, r.Wait)) }

func (rec Recorder) Cancelled(r *Request, signal string, waited time.Duration) {
	e := r.event(runlog.Cancel)
	e.Signal, e.Wait, e.Reason = signal, waited, "ended before the job began"
	rec.append(e)
}

func (r *Request) refused(kind runlog.Kind, o Outcome, wait time.Duration) runlog.Event {
	e := r.event(kind)
	e.Verdict, e.Reason, e.Wait = string(o.Verdict), o.Reason, wait
	e.Owner, e.OwnerNode, e.OwnerToken, e.Age = o.found.Owner, o.found.OwnerNode, o.found.OwnerToken, o.found.Age
	e.Overdue, e.Work = o.told, o.work
	r.describeLimits(&e, o.inWay.Active)
	return e
}

// Expiring logs that the owner in v has passed ExpireAfter and is about to be ended.
func (rec Recorder) Expiring(r *Request, v *View) {
	e := r.eventOf(runlog.Expire, v)
	e.Idle = r.idleOf(v)
	rec.append(e)
}

// Replaced logs that the newcomer has replaced the lock in v: as a reclaim if the owner was dead, else as a
// takeover, which it also reports.
func (rec Recorder) Replaced(r *Request, step policy.Step, v *View) {
	if step == policy.Reclaim {
		rec.append(r.eventOf(runlog.Reclaim, v))
		return
	}
	e := r.eventOf(runlog.Takeover, v)
	e.Idle = r.idleOf(v)
	rec.append(e)
	why := expired(v.Active.Age, e.ExpireAfter.Value, policy.Source(e.ExpireAfterFrom), e.Idle)
	rec.tell(hook.Ended, e, "ended "+processOn(e.Owner, e.OwnerNode)+" by force: "+why)
}

// Pause logs that a person has paused the atom or, if p is not On, resumed it. The zero Atom stands for the whole host.
func (rec Recorder) Pause(a atom.Atom, p policy.Pause, person string) {
	e := event(runlog.Resume, a, os.Getpid())
	e.Reason = "by " + person
	if p.On {
		e.Kind, e.Reason = runlog.Pause, p.Reason()+", by "+person
	}
	rec.append(e)
}

// Stopping logs, before any signal, that a person ends the owner in v, whose supervisor reads the event.
func (rec Recorder) Stopping(r *Request, v *View) { rec.append(r.stopped(runlog.Stop, v)) }

// Stopped logs and reports that the owner in v was ended, as a person asked, and that its lock was removed.
func (rec Recorder) Stopped(r *Request, v *View) {
	e := r.stopped(runlog.Clear, v)
	rec.append(e)
	rec.tell(hook.Ended, e, "ended "+processOn(e.Owner, e.OwnerNode)+" by force, as asked: "+hadRun(v.Active.Age))
}

func (r *Request) stopped(kind runlog.Kind, v *View) runlog.Event {
	e := r.event(kind)
	e.Owner, e.OwnerNode, e.OwnerToken, e.Age = v.Record.Owner.PID, v.Node, v.Record.Token, runlog.Some(v.Active.Age)
	return e
}

// Signalled logs that a newcomer sent a signal to the job of the owner in v.
func (rec Recorder) Signalled(r *Request, v *View, s killer.Signalled) {
	e := r.event(runlog.Signal)
	e.Signal, e.Target, e.OwnerToken = s.Signal, s.PID, v.Record.Token
	rec.append(e)
}

// RecordSignal logs that an owner sent a signal to its own job.
func (rec Recorder) RecordSignal(r *Request, s killer.Signalled) {
	rec.Signalled(r, &View{}, s)
}

// Emptied logs that a lock without a record was cleared.
func (rec Recorder) Emptied(r *Request, v *View) {
	e := r.event(runlog.Empty)
	e.Age = runlog.Some(v.Active.Age)
	if v.Active.Wrecked {
		e.Reason = wrecked
	}
	rec.append(e)
}

// SayEmptied is Emptied, and prints that the lock at path was cleared.
func (rec Recorder) SayEmptied(r *Request, v *View, path string) {
	rec.Emptied(r, v)
	text := "empty lock cleared"
	if v.Active.Wrecked {
		text = wrecked + ": cleared"
	}
	fault.Warn(path, text)
}

const wrecked = "damaged lock from before this boot"

// DamagedLast logs and prints, once for a request, that the last lock (at path) is damaged and counts as due.
func (rec Recorder) DamagedLast(r *Request, path string) {
	if !r.saidDamaged {
		e := r.event(runlog.Clock)
		e.Reason = "the last lock is damaged, and counts as due"
		rec.append(e)
		fault.Warn(path, "damaged last lock: counts as due, and is made anew when the run completes")
	}
	r.saidDamaged = true
}

func (rec Recorder) FutureStamp(r *Request, last policy.Last) {
	if last.Future && !r.saidFuture {
		e := r.event(runlog.Clock)
		e.Age, e.Reason = runlog.Some(last.Age), "the last lock lies in the future and is not believed"
		rec.append(e)
	}
	r.saidFuture = r.saidFuture || last.Future
}

func (rec Recorder) OwnExpires(r *Request, token string, age, idle time.Duration) {
	rec.Expiring(r, r.ownView(token, age, idle))
}

func (rec Recorder) OwnStuck(r *Request, token string, age time.Duration, why error) {
	e := r.eventOf(runlog.Stuck, r.ownView(token, age, 0))
	e.Token, e.Verdict, e.Reason = token, string(Stuck), fault.OneLine(why.Error())
	rec.append(e)
	rec.tell(hook.Stuck, e, "stuck: "+e.Reason+"; adlock stays with the job, and keeps its lock, until nothing of it is left")
}

func (r *Request) ownView(token string, age, idle time.Duration) *View {
	own := r.Record()
	own.Token = token
	return &View{Record: own, Active: policy.Active{Held: true, Age: age, Owner: policy.Lives, Asked: own.ExpireAfter, Source: own.Source, Idle: idle}}
}

// Released logs the end of the acquisition, notifies the hook (not with Withdraw), and prints an ending by the owner's
// own supervisor. failed is the error if the last lock or a slot could not be written; the caller prints it.
func (rec Recorder) Released(r ReleaseRequest, own record.Record, failed error) {
	e := event(runlog.Release, own.Atom, own.Owner.PID)
	e.Token, e.Status, e.Signal = own.Token, r.Status, r.Signal
	e.Duration = runlog.Some(own.Held())
	if r.Untold || r.Withdraw {
		e.Status, e.Reason = runlog.Some(-1), "ended without a release"
	}
	if failed != nil {
		e.Reason = joined(e.Reason, failed.Error())
	}
	rec.append(e)
	rec.tellEnd(r, e, own)
	if failed != nil {
		rec.tellHook(hook.Unwritten, event(runlog.Release, own.Atom, own.Owner.PID), failed.Error())
	}
}

// Lost logs, and notifies the hook, that the acquisition was lost before its release. found is the record of the
// lock (object) that is there now, or of the lost acquisition. If neither is known, found is nil, and a is the atom.
// The returned error is of the kind fault.Denied.
func (rec Recorder) Lost(object string, r ReleaseRequest, a atom.Atom, found *record.Record, why error) error {
	e := event(runlog.Lost, a, r.PID)
	if found != nil {
		e = event(runlog.Lost, found.Atom, r.PID)
		if found.Token == r.Token {
			e.PID = found.Owner.PID
		} else {
			e.Owner, e.OwnerToken = found.Owner.PID, found.Token
		}
	}
	e.Token, e.Reason = r.Token, fault.OneLine(why.Error())
	rec.append(e)
	rec.tellHook(hook.Lost, e, "lost: "+e.Reason)
	return &fault.Error{Kind: fault.Denied, Object: object, Err: fault.Worded("lost: "+why.Error(), why)}
}

// Cleared logs that a person has removed the lock with this record. node is the machine of its owner; "" for this one.
func (rec Recorder) Cleared(own record.Record, node string) {
	e := event(runlog.Clear, own.Atom, os.Getpid())
	e.Owner, e.OwnerNode, e.OwnerToken = own.Owner.PID, node, own.Token
	rec.append(e)
}

// recentBytes is about 700 lines of the runlog, few enough to be read at each denial.
const recentBytes = 256 << 10

// askedTooSoon counts how often the atom was denied as too soon after it was last taken, and not before the time since.
func (rec Recorder) askedTooSoon(a atom.Atom, since time.Time) (n int) {
	for e := range rec.since(a, "") {
		if e.Kind == runlog.Deny && e.Verdict == string(TooSoon) && !e.Time.Before(since) {
			n++
		}
	}
	return n
}

// since yields the events of the atom since it was taken with that token ("": since it was last taken), the
// newest first, from the last recentBytes. With a token, an Acquire of another reader may be among them.
func (rec Recorder) since(a atom.Atom, token string) iter.Seq[runlog.Event] {
	return func(yield func(runlog.Event) bool) {
		for e := range rec.recent(a) {
			if e.Kind == runlog.Acquire && (token == "" || e.Token == token) || !yield(e) {
				return
			}
		}
	}
}

func (rec Recorder) recent(a atom.Atom) iter.Seq[runlog.Event] {
	return func(yield func(runlog.Event) bool) {
		if rec.Log == nil {
			return
		}
		for e := range rec.Log.Newest(recentBytes) {
			if rec.isOf(&e, a) && !yield(e) {
				return
			}
		}
	}
}
