package locker

import (
	"cmp"
	"errors"
	"time"

	"adlock/lib/fault"
	"adlock/lib/idle"
	"adlock/lib/limit"
	"adlock/lib/policy"
	"adlock/lib/runlog"
	"adlock/lib/sysfile"
)

// Verdict is the answer to a request.
type Verdict string

const (
	Acquired Verdict = "acquired"
	Busy     Verdict = "busy"
	TooSoon  Verdict = "too-soon"
	Full     Verdict = "full"
	Paused   Verdict = "paused"
	Stuck    Verdict = "stuck"   // with an error: the owner cannot be ended, or a stopped process guards its lock
	Expired  Verdict = "expired" // only if LeaveExpired asks for it
)

// Outcome is a verdict with its reason, and the token if the atom was taken.
type Outcome struct {
	Verdict Verdict
	Reason  string // in words, with the verdict (not if Stuck)
	Figures string // Reason without the verdict's words
	Token   string
	Fence   string // a number that is higher for each later owner; "": not offered

	ExpireAfter time.Duration // the limit in force, if the atom was taken
	Watch       time.Duration // how long the job is watched before a learned limit ends it

	// For a waiter.
	Endless bool          // waiting is useless: the newcomer's own job is in the way, the tick is used, 'now' is fixed, or a run that was asked for later has begun
	Blocker int           // pid of the owner in the way; 0: unknown
	Node    string        // the machine of that owner, if that may be another one
	Recheck time.Duration // check again after this time at most: the owner expires, the pause ends, or the atom is due; 0: unknown

	inside int // how many of the locks in the way are held by a job to which the newcomer belongs

	found runlog.Event              // the owner and its age; if too soon, the last lock's age
	inWay View                      // the lock that denied the atom; of several slots, the one held longest
	work  string                    // what the job in the way was seen doing after its learned limit
	cut   bool                      // an earlier newcomer began to watch that job, and did not finish
	told  runlog.Opt[time.Duration] // the age of the lock inWay when its owner was last reported as overdue
}

// Denied returns the outcome if the decision is to deny the atom in v, or to leave an expired owner alone.
func (r *Request) Denied(d policy.Decision, v *View) Outcome {
	o := Outcome{Verdict: verdicts[d.Step], Reason: d.Reason(), Figures: d.Figures(), inWay: *v, work: v.Active.Work}
	o.inWay.Active = d.Active
	r.describe(&o.found, v)
	switch o.Verdict {
	case TooSoon:
		o.found.Age = runlog.Some(v.Last.Age)
		o.Recheck, o.Endless = policy.DueIn(r.Limits, v.Last), d.TickUsed() || !r.Now.IsZero()
	case Paused:
		if v.Pause.Left != limit.Never {
			o.Recheck = v.Pause.Left
		}
	case Busy:
		o.Blocker, o.Node, o.Endless = v.Record.Owner.PID, v.Node, d.Outdated()
		if expiry := policy.Expiry(r.Limits, v.Active); expiry != limit.Never && (r.Now.IsZero() || v.Active.Age >= expiry) {
			o.Recheck = cmp.Or(max(0, expiry-v.Active.Age), idle.Shortest) // the job may be idle by then
		}
		r.RefuseEndless(&o, v)
	}
	return o
}

// Full returns the outcome if as many atoms of the program run as the newcomer allows.
func (r *Request) Full() Outcome {
	return r.Denied(policy.Decide(r.Terms(), policy.Situation{}).With(policy.Full), &View{})
}

// TakenBy adds the owner in v, which has one of the slots, to the outcome Full.
func (r *Request) TakenBy(o *Outcome, v *View) {
	r.RefuseEndless(o, v)
	if !o.inWay.Active.Held || v.Active.Age >= o.inWay.Active.Age { // the age of an empty lock may be below 0
		o.inWay = *v
	}
}

// ClaimTick claims the tick if the outcome o is Acquired. It must be called last: a denied newcomer must not use up
// a tick. If another newcomer was faster, the outcome is TooSoon. Only a release without a stamp takes the claim back.
func (r *Request) ClaimTick(o Outcome, err error, claim func() (bool, error)) (Outcome, error) {
	if err != nil || o.Verdict != Acquired || !r.Tick.Asked() {
		return o, err
	}
	claimed, err := claim()
	if !claimed && err == nil {
		o = r.Denied(policy.Decide(r.Terms(), policy.Situation{TickUsed: true}), &View{})
	}
	return o, err
}

// Owner returns, in words, the owner that was found; "" if it is unknown.
func (o Outcome) Owner() string {
	if o.found.Owner == 0 {
		return ""
	}
	return o.inWords(o.found.Owner)
}

// Since returns when the lock in the way was made. now is the time of the outcome, not of a pass clock.
func (o Outcome) Since(now time.Time) time.Time { return o.inWay.Since(now) }

// User returns ", user NAME" for the owner in the way; "" if its lock has no record, or it may be on another machine.
func (o Outcome) User() string {
	if o.Node != "" || o.inWay.Record.Token == "" {
		return ""
	}
	return ", user " + sysfile.UserName(o.inWay.Record.Owner.UID)
}

// Endable reports whether the lock in the way has a living owner, or processes that a dead owner has left: a
// newcomer could end them. It considers neither limits nor permissions.
func (o Outcome) Endable() bool {
	return !o.inWay.Active.Empty && (o.inWay.Active.Owner == policy.Lives || o.inWay.Active.Owner == policy.Orphaned)
}

// Inside reports whether the newcomer is denied by the job to which it belongs: while that job waits for the
// newcomer, the request cannot succeed. It is false with an Asker: a program that uses `adlock hold` need not wait.
func (r *Request) Inside(o Outcome) bool { return r.Asker == nil && r.isKeptOut(&o) }

func (r *Request) isKeptOut(o *Outcome) bool {
	return o.inside > 0 && (o.Verdict == Busy || o.Verdict == Full && o.inside >= r.Slots)
}

func (o Outcome) inWords(pid int) string {
	who := processOn(pid, o.Node)
	if o.inWay.Active.Owner == policy.Orphaned {
		who += ", which is dead, but processes of its job are left"
	}
	return who
}

func processOn(pid int, node string) string { return "process " + runlog.On(pid, node) }

var verdicts = map[policy.Step]Verdict{
	policy.TooSoon: TooSoon, policy.Busy: Busy, policy.Full: Full, policy.Stuck: Stuck, policy.Expire: Expired, policy.Paused: Paused,
}

// RefuseEndless adds the lock in v to o.inside if the newcomer belongs to the job that holds it. It then sets o.Endless
// if the wait has no limit. A limited wait may succeed, as the newcomer may run in the job's background.
func (r *Request) RefuseEndless(o *Outcome, v *View) {
	if v.IsInsideJob() {
		o.inside++
		o.Endless = o.Endless || r.Wait == limit.Never && r.isKeptOut(o)
	}
}

// Stuck returns the outcome if the owner in v cannot be ended, or its lock cannot be changed. The error names the cure.
func (r *Request) Stuck(object string, v *View, why error, cure string) (Outcome, error) {
	o := Outcome{Verdict: Stuck, Reason: why.Error()}
	r.describe(&o.found, v)
	return o, fault.New(fault.NotPermitted, object, joined("stuck: "+why.Error(), cure))
}

// ErrNotAtOnce says that the agent does not serve the request: the script runs a helper for it.
var ErrNotAtOnce = errors.New("it cannot be done at once")

// ErrGuarded says that another process is changing the lock now.
var ErrGuarded = errors.New("another process is changing the lock")

// ErrLost says that the lock's file is gone, or that another file or acquisition has taken its place.
var ErrLost = errors.New("the lock has another owner")

// JoinErrors joins two errors. ErrGuarded goes away by itself, so it is left out beside another error.
func JoinErrors(one, other error) error {
	switch {
	case one == nil || other != nil && errors.Is(one, ErrGuarded):
		return other
	case other == nil || errors.Is(other, ErrGuarded):
		return one
	}
	return errors.Join(one, other)
}
