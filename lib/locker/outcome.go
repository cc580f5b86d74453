package locker

import (
	"cmp"
	"errors"
	"strconv"
	"time"

	"adlock/lib/fault"
	"adlock/lib/idle"
	"adlock/lib/limit"
	"adlock/lib/policy"
	"adlock/lib/runlog"
)

// Verdict is the answer to a request.
type Verdict string

// The verdicts.
const (
	Acquired Verdict = "acquired"
	Busy     Verdict = "busy"
	TooSoon  Verdict = "too-soon"
	Full     Verdict = "full"
	Stuck    Verdict = "stuck"   // with an error: the owner has expired and cannot be ended
	Expired  Verdict = "expired" // only where LeaveExpired asks for it
)

// Outcome is a verdict with its reason, and the token where the atom was taken.
type Outcome struct {
	Verdict Verdict
	Reason  string
	Token   string
	Fence   string // a number that only grows from owner to owner; "": not offered

	ExpireAfter time.Duration // in force, where the atom was taken
	Watch       time.Duration // how long the job is watched before that limit ends it, where it is learned

	// For waiters.
	Endless bool          // to wait for it would have no end: it waits for this newcomer, or the tick stays used
	Blocker int           // pid of the owner in the way; 0: unknown
	Node    string        // and its machine, where that may be another one
	Recheck time.Duration // another look is worthwhile after this, whatever else happens: the owner expires, the atom is due; 0: not known

	found runlog.Event              // the owner and its age
	inWay View                      // the lock that denied it; of several slots the one that is held longest
	work  string                    // what the job in the way is seen to do, though a limit that was learned has passed
	told  runlog.Opt[time.Duration] // the age of that lock when a person was told last that its owner is overdue
}

// Denied is the outcome where the decision is not to take the atom in v, or to
// leave an expired owner to another step.
func (r *Request) Denied(d policy.Decision, v *View) Outcome {
	o := Outcome{Verdict: verdicts[d.Step], Reason: d.Reason(), inWay: *v, work: v.Active.Work}
	o.inWay.Active = d.Active
	r.describe(&o.found, v)
	switch o.Verdict {
	case TooSoon:
		o.found.Age = runlog.Some(v.Last.Age)
		o.Recheck, o.Endless = policy.DueIn(r.Limits, v.Last), d.TickUsed()
	case Busy:
		o.Blocker, o.Node = v.Record.Owner.PID, v.Node
		if expiry := policy.Expiry(r.Limits, v.Active); expiry != limit.Never {
			o.Recheck = cmp.Or(max(0, expiry-v.Active.Age), idle.Shortest) // it may be idle by then
		}
		r.RefuseEndless(&o, v)
	}
	return o
}

// Full is the outcome where as many atoms of the program run as the newcomer allows.
func (r *Request) Full() Outcome {
	return r.Denied(policy.Decide(r.Terms(), policy.Situation{}).With(policy.Full), &View{})
}

// TakenBy adds to the outcome Full that the owner in v has one of the slots.
func (r *Request) TakenBy(o *Outcome, v *View) {
	r.RefuseEndless(o, v)
	if v.Active.Age >= o.inWay.Active.Age {
		o.inWay = *v
	}
}

// RunsUnlocked is the outcome where a run without a lock is under way, by that process (0: it
// is not known by which).
func RunsUnlocked(pid int) Outcome {
	return Outcome{
		Verdict: Busy, Reason: "busy: it runs without a lock", Blocker: pid,
		found: runlog.Event{Owner: pid}, inWay: View{Active: policy.Active{Owner: policy.Untouched}},
	}
}

// ClaimTick has the tick claimed, where one is asked for and nothing else denies the atom:
// so no denied newcomer uses a tick. Where another was faster that is the
// outcome. The claim stands from then on, whatever becomes of the job; only a release that
// does not stamp takes it back.
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

// Owner is the owner that was found, in words, and since when it runs; "": not known.
func (o Outcome) Owner() (who string, since time.Time) {
	if o.found.Owner != 0 {
		who = o.inWords(o.found.Owner)
	}
	return who, time.Now().Add(-o.found.Age.Value)
}

// Endable tells whether a newcomer could end what is in the way.
func (o Outcome) Endable() bool {
	return !o.inWay.Active.Empty && (o.inWay.Active.Owner == policy.Lives || o.inWay.Active.Owner == policy.Orphaned)
}

// Inside tells whether the newcomer belongs to the owner that is in its way.
func (o Outcome) Inside() bool { return o.inWay.Active.Owner == policy.Ancestor }

// inWords is the owner pid, and what of its job is in the way where it is dead itself.
func (o Outcome) inWords(pid int) string {
	who := processOn(pid, o.Node)
	if o.inWay.Active.Owner == policy.Orphaned {
		who += ", which is dead, but not all of its job"
	}
	return who
}

// processOn is a process in words, and its machine where that may be another one.
func processOn(pid int, node string) string {
	who := "process " + strconv.Itoa(pid)
	if node != "" {
		who += " on " + node
	}
	return who
}

var verdicts = map[policy.Step]Verdict{
	policy.TooSoon: TooSoon, policy.Busy: Busy, policy.Full: Full, policy.Stuck: Stuck, policy.Expire: Expired,
}

// RefuseEndless says of a newcomer that would wait for itself, as it was started
// from inside the job in its way, that this has no end. Only where it asked to wait
// without end: a job may have started it beside itself, and release first.
func (r *Request) RefuseEndless(o *Outcome, v *View) {
	if !o.Endless && r.Wait == limit.Never && v.isInsideJob() {
		o.Endless = true
		o.Reason = joined(o.Reason, "to wait without end is refused inside the job that is waited for")
	}
}

// Stuck is the outcome, and the error, where the owner in v has expired and cannot
// be ended; object is the lock, and cure what a person may do about it ("": nothing
// is known).
func (r *Request) Stuck(object string, v *View, why error, cure string) (Outcome, error) {
	o := Outcome{Verdict: Stuck, Reason: why.Error()}
	r.describe(&o.found, v)
	return o, fault.New(fault.NotPermitted, object, joined("stuck: "+why.Error(), cure))
}

// ErrNotAtOnce says that what was asked for takes waiting, signals or words, or is rare:
// it is for a process of the script's own.
var ErrNotAtOnce = errors.New("it cannot be done at once")

// ErrGuarded says that another process is changing the lock just now.
var ErrGuarded = errors.New("another process is changing the lock")

// ErrLost says that the name has another file by now, or none, or that the
// content names another acquisition.
var ErrLost = errors.New("the lock has another owner")

// JoinErrors joins two errors, save that ErrGuarded gives way to any other: it passes by itself.
func JoinErrors(one, other error) error {
	switch {
	case one == nil || other != nil && errors.Is(one, ErrGuarded):
		return other
	case other == nil || errors.Is(other, ErrGuarded):
		return one
	}
	return errors.Join(one, other)
}
