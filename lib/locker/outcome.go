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
	"adlock/lib/sysfile"
)

// Verdict is the answer to a request.
type Verdict string

// The verdicts.
const (
	Acquired Verdict = "acquired"
	Busy     Verdict = "busy"
	TooSoon  Verdict = "too-soon"
	Full     Verdict = "full"
	Paused   Verdict = "paused"
	Stuck    Verdict = "stuck"   // with an error: the owner has expired and cannot be ended
	Expired  Verdict = "expired" // only if LeaveExpired asks for it
)

// Outcome is a verdict with its reason, and the token if the atom was taken.
type Outcome struct {
	Verdict Verdict
	Reason  string // with the verdict in words
	Figures string // Reason without these words
	Token   string
	Fence   string // a number that only grows from owner to owner; "": not offered

	ExpireAfter time.Duration // in force, if the atom was taken
	Watch       time.Duration // how long the job is watched before a learned limit ends it

	// For a waiter.
	Endless bool          // a wait would be in vain: the job in the way waits for this newcomer, the tick stays used, or a later start has come before
	Blocker int           // pid of the owner in the way; 0: unknown
	Node    string        // and its machine, if that may be another one
	Recheck time.Duration // look again after this at the latest: the owner expires, or the atom is due; 0: unknown

	inside int // how many of the locks in the way are held by a job to which the newcomer belongs

	found runlog.Event              // the owner and its age
	inWay View                      // the lock that denied the atom; of several slots, the one held longest
	work  string                    // what the job in the way is seen to do after a learned limit has passed
	cut   bool                      // a newcomer has watched that job, and has not ended its watch
	told  runlog.Opt[time.Duration] // the age of that lock when its owner was last reported as overdue
}

// Denied is the outcome if the decision is not to take the atom in v, or to leave an expired owner.
func (r *Request) Denied(d policy.Decision, v *View) Outcome {
	o := Outcome{Verdict: verdicts[d.Step], Reason: d.Reason(), Figures: d.Figures(), inWay: *v, work: v.Active.Work}
	o.inWay.Active = d.Active
	r.describe(&o.found, v)
	switch o.Verdict {
	case TooSoon:
		o.found.Age = runlog.Some(v.Last.Age)
		o.Recheck, o.Endless = policy.DueIn(r.Limits, v.Last), d.TickUsed()
	case Paused:
		if v.Pause.Left != limit.Never {
			o.Recheck = v.Pause.Left
		}
	case Busy:
		o.Blocker, o.Node, o.Endless = v.Record.Owner.PID, v.Node, d.Outdated()
		if expiry := policy.Expiry(r.Limits, v.Active); expiry != limit.Never {
			o.Recheck = cmp.Or(max(0, expiry-v.Active.Age), idle.Shortest) // the job may be idle by then
		}
		r.RefuseEndless(&o, v)
	}
	return o
}

// Full is the outcome if as many atoms of the program run as the newcomer allows.
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

// ClaimTick claims the tick last: a denied newcomer uses none. If another newcomer was faster, the outcome
// is TooSoon. A claim stays, however the job ends; only a release without a stamp takes it back.
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

// Owner returns the owner that was found, in words ("": unknown), and when it started.
func (o Outcome) Owner() (who string, since time.Time) {
	if o.found.Owner != 0 {
		who = o.inWords(o.found.Owner)
	}
	return who, time.Now().Add(-o.found.Age.Value - o.inWay.Record.Slept())
}

// User is ", user NAME" of that owner; "" if the lock, or its machine, does not tell.
func (o Outcome) User() string {
	if o.Node != "" || o.inWay.Record.Token == "" {
		return ""
	}
	return ", user " + sysfile.UserName(o.inWay.Record.Owner.UID)
}

// Endable tells whether a newcomer could end the owner in the way.
func (o Outcome) Endable() bool {
	return !o.inWay.Active.Empty && (o.inWay.Active.Owner == policy.Lives || o.inWay.Active.Owner == policy.Orphaned)
}

// Inside tells whether the newcomer's own job is in its way: while that waits for the newcomer, the
// request cannot succeed. A program that asks for itself (Asker) need not wait.
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

func processOn(pid int, node string) string {
	who := "process " + strconv.Itoa(pid)
	if node != "" {
		who += " on " + node
	}
	return who
}

var verdicts = map[policy.Step]Verdict{
	policy.TooSoon: TooSoon, policy.Busy: Busy, policy.Full: Full, policy.Stuck: Stuck, policy.Expire: Expired, policy.Paused: Paused,
}

// RefuseEndless marks the outcome if the newcomer would wait for its own job without a limit. A limited
// wait may succeed: the job may have started the newcomer in the background.
func (r *Request) RefuseEndless(o *Outcome, v *View) {
	if v.IsInsideJob() {
		o.inside++
		o.Endless = o.Endless || r.Wait == limit.Never && r.isKeptOut(o)
	}
}

// Stuck is outcome and error if the owner in v has expired and cannot be ended; object is the lock.
func (r *Request) Stuck(object string, v *View, why error, cure string) (Outcome, error) {
	o := Outcome{Verdict: Stuck, Reason: why.Error()}
	r.describe(&o.found, v)
	return o, fault.New(fault.NotPermitted, object, joined("stuck: "+why.Error(), cure))
}

// ErrNotAtOnce says that the agent does not serve the request: the script runs a helper for it.
var ErrNotAtOnce = errors.New("it cannot be done at once")

// ErrGuarded says that another process is changing the lock now.
var ErrGuarded = errors.New("another process is changing the lock")

// ErrLost says that the name has another file, or none, or names another acquisition.
var ErrLost = errors.New("the lock has another owner")

// JoinErrors joins two errors, but leaves out ErrGuarded, which passes by itself, beside another.
func JoinErrors(one, other error) error {
	switch {
	case one == nil || other != nil && errors.Is(one, ErrGuarded):
		return other
	case other == nil || errors.Is(other, ErrGuarded):
		return one
	}
	return errors.Join(one, other)
}
