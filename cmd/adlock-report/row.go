package main

import (
	"os"
	"strconv"
	"strings"
	"time"

	"adlock/lib/atom"
	"adlock/lib/history"
	"adlock/lib/learn"
	"adlock/lib/name"
	"adlock/lib/policy"
	"adlock/lib/runlog"
)

// row is one atom as status shows it.
type row struct {
	Files string    // NAME
	atom  name.Atom // as people call it; zero where only NAME is known
	State string    // idle, running, overdue, orphaned, unknown, damaged

	Held       bool
	Age        time.Duration // of the active lock
	Since      time.Time     // when it was taken
	Owner, UID int

	Completed time.Time                 // zero: never
	DueIn     runlog.Opt[time.Duration] // of an idle atom whose limits are known

	Limits      policy.Limits // of the owner, or those last asked for
	LimitsKnown bool

	Learned learn.State // zero: nothing

	Takeable bool // by a newcomer with these limits
	Why      string
}

func rowOf(e *atom.Entry, asked map[string]request, now time.Time) *row {
	last, recorded := asked[e.Files]
	r := &row{Files: e.Files, Completed: e.Completed, Limits: last.limits, LimitsKnown: recorded, Learned: e.Memory.Learned}
	var named bool
	if r.atom, named = nameOf(e); !named {
		r.atom = last.atom
	}
	if e.Err != nil {
		r.State, r.Why = "damaged", e.Err.Error()
		return r
	}
	if e.Record.Token != "" { // the owner's own; one with only a pid has none
		r.Limits, r.LimitsKnown = policy.Limits{IfElapsed: e.Record.IfElapsed, ExpireAfter: e.Record.ExpireAfter}, true
	}
	if !r.LimitsKnown {
		r.Limits.ExpireAfter = policy.DefaultExpireAfter
	}
	step := e.Step(r.Limits)
	r.Takeable = step != policy.TooSoon && step != policy.Busy && step != policy.Stuck
	r.Why = policy.Reason(step, r.Limits, e.Last, e.Active)
	if r.State = "idle"; e.Active.Held {
		r.hold(e, now)
	} else if r.LimitsKnown {
		r.DueIn = runlog.Some(policy.DueIn(r.Limits, e.Last))
	}
	return r
}

func (r *row) hold(e *atom.Entry, now time.Time) {
	r.Held, r.Age, r.Since = true, e.Active.Age, now.Add(-e.Active.Age).Round(time.Second)
	r.Owner, r.UID = e.Record.Owner.PID, e.Record.Owner.UID
	switch expired := e.Active.Age >= policy.Expiry(r.Limits, e.Active); {
	case e.Active.Owner == policy.Dead || e.Active.Owner == policy.Orphaned:
		r.State = "orphaned"
	case expired && !e.Active.Empty:
		r.State = "overdue"
	case e.Active.Owner == policy.Unknown:
		r.State = "unknown"
	default:
		r.State = "running"
	}
}

// name is what the atom is called in the table.
func (r *row) name() string {
	if r.atom == (name.Atom{}) {
		return r.Files
	}
	return history.Text(r.atom)
}

// userName is the name of a user of this system; "" where /etc/passwd does not
// have one, as with users of a directory service.
func userName(uid int) string {
	passwd, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(passwd)) {
		if f := strings.Split(line, ":"); len(f) > 2 && f[2] == strconv.Itoa(uid) {
			return f[0]
		}
	}
	return ""
}
