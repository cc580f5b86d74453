package main

import (
	"math"
	"time"

	"adlock/lib/learn"
	"adlock/lib/limit"
	"adlock/lib/policy"
)

// limiter sets the limits of the next newcomer, and may learn from runs.
type limiter interface {
	limits() policy.Limits
	typical() time.Duration // length of a run, which decides how long a job is watched
	succeeded(runtime time.Duration)
	ended(age time.Duration)
	asked(tooSoon int)
}

// rules are one way to lock a job.
type rules struct {
	name    string
	timeout time.Duration // the job is ended at this age, without a newcomer; 0: never
	limiter func() limiter
	watches bool  // past the limit a job is watched, and ended if it is idle
	sleep   sleep // of healthy runs; nil: they work throughout
}

// These are the limits that the paper recommends for an hourly job.
const (
	fixedIfElapsed   = 15 * time.Minute
	fixedExpireAfter = 90 * time.Minute
)

var (
	paper   = rules{name: "15m, 90m", limiter: fix(fixedIfElapsed, fixedExpireAfter)}
	byTime  = rules{name: "auto, no watch", limiter: newAuto}
	working = rules{name: "auto, working", limiter: newAuto, watches: true}
	brief   = rules{name: "auto, short sleep", limiter: newAuto, watches: true, sleep: short}
	learned = rules{name: "auto, long sleep", limiter: newAuto, watches: true, sleep: long}
)

func newAuto() limiter { return &auto{} }

var allRules = []rules{
	{name: "lock alone", limiter: fix(0, limit.Never)},
	{name: "flock -n, timeout 90m", timeout: fixedExpireAfter, limiter: fix(0, limit.Never)},
	paper,
	{name: "as TCP", limiter: func() limiter { return &tcp{} }},
	byTime, working, brief, learned,
}

// fixed are limits that never change.
type fixed policy.Limits

func fix(ifElapsed, expireAfter time.Duration) func() limiter {
	return func() limiter {
		return fixed{IfElapsed: ifElapsed, ExpireAfter: expireAfter, Source: policy.Said}
	}
}

func (f fixed) limits() policy.Limits   { return policy.Limits(f) }
func (f fixed) typical() time.Duration  { return 0 }
func (f fixed) succeeded(time.Duration) {}
func (f fixed) ended(time.Duration)     {}
func (f fixed) asked(int)               {}

// auto is the real learner of lib/learn.
type auto struct{ state learn.State }

func (a *auto) limits() policy.Limits {
	ifElapsed := a.state.IfElapsed()
	return policy.Limits{IfElapsed: ifElapsed, ExpireAfter: a.state.ExpireAfter(ifElapsed), Source: policy.Learned}
}

func (a *auto) typical() time.Duration          { return a.state.Typical() }
func (a *auto) succeeded(runtime time.Duration) { a.state.Succeeded(runtime) }
func (a *auto) ended(age time.Duration)         { a.state.Ended(age) }
func (a *auto) asked(tooSoon int)               { a.state.Asked(tooSoon) }

// tcp is exactly Jacobson and Karels' retransmission timer (SIGCOMM '88; RFC 6298): gains of 1/8
// and 1/4 on the runtime itself, mean + 4 deviations, doubled at each end by force until the next
// success.
type tcp struct {
	runs, doubled   int
	mean, deviation float64 // seconds
}

func (t *tcp) limits() policy.Limits {
	l := policy.Limits{IfElapsed: learn.LeastIfElapsed, ExpireAfter: learn.Prior, Source: policy.Learned}
	if t.runs >= learn.Enough {
		l.IfElapsed = max(l.IfElapsed, seconds(t.mean))
		l.ExpireAfter = max(time.Minute, l.IfElapsed, seconds(t.mean+4*t.deviation))
	}
	l.ExpireAfter = min(learn.Ceiling, l.ExpireAfter<<min(t.doubled, 10))
	return l
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

func (t *tcp) typical() time.Duration { return 0 }
func (t *tcp) succeeded(runtime time.Duration) {
	if t.runs++; t.runs == 1 {
		t.mean, t.deviation = runtime.Seconds(), runtime.Seconds()/2
	}
	off := runtime.Seconds() - t.mean
	t.deviation += (math.Abs(off) - t.deviation) / 4
	t.mean += off / 8
	t.doubled = 0
}

func (t *tcp) ended(time.Duration) { t.doubled++ }
func (t *tcp) asked(int)           {}
