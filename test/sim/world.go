package main

import (
	"math/rand/v2"
	"time"

	"adlock/lib/policy"
)

// Who asks for the atom: cron every minute, and somebody by hand now and then.
const (
	cronEvery   = time.Minute
	manualEvery = time.Hour // on average, at random
)

// forever is longer than any simulation.
const forever = 1 << 62 * time.Nanosecond

// world is a simulated machine with one atom. Times count from its beginning.
type world struct {
	load   load
	rules  rules
	real   limiter
	random *rand.Rand

	now              time.Duration
	nextCron, manual time.Duration // the starts to come

	running   *run
	completed time.Duration // when the atom last completed; below 0: never
	tooSoon   int           // denials since the last acquisition
	tally     tally
	hungSince time.Duration // when the hang began that nothing has completed since; below 0: none
	produced  time.Duration // when a run last completed with success
	watch     func(ending)  // told of each run's end; may be nil
}

// run holds the atom.
type run struct {
	number  int
	began   time.Duration
	takes   time.Duration // forever: it hangs
	granted time.Duration // ExpireAfter as its owner asked
}

func (r *run) hangs() bool { return r.takes == forever }

// ending is how a run ended.
type ending struct {
	run
	at      time.Duration
	byForce bool
}

// tally is what came of it.
type tally struct {
	runs, completed int
	mistakes        int // healthy runs that were ended
	afterStep       int // of these, within the 200 runs after the step
	hangs           int // that were recovered from
	recovery, worst time.Duration
	longest         time.Duration // without a completed run
	elapsed         time.Duration
}

func newWorld(l load, r rules, seed uint64) *world {
	w := &world{load: l, rules: r, real: r.limiter(), random: rand.New(rand.NewPCG(seed, 0)), completed: -1, hungSince: -1}
	w.manual = w.untilManual()
	return w
}

// play goes on until so many runs were begun or the time has come.
func (w *world) play(runs int, until time.Duration) tally {
	for w.tally.runs < runs && w.now < until {
		w.nextStart()
		w.settle()
		w.ask()
	}
	w.tally.elapsed = w.now
	w.tally.longest = max(w.tally.longest, w.now-w.produced)
	return w.tally
}

func (w *world) untilManual() time.Duration {
	return time.Duration(w.random.ExpFloat64() * float64(manualEvery))
}

func (w *world) nextStart() {
	if w.manual < w.nextCron {
		w.now = w.manual
		w.manual += w.untilManual()
		return
	}
	w.now = w.nextCron
	w.nextCron += cronEvery
}

// settle ends the run whose time has come since.
func (w *world) settle() {
	r := w.running
	switch {
	case r == nil:
	case w.rules.timeout > 0 && r.takes > w.rules.timeout && w.now >= r.began+w.rules.timeout:
		w.end(r.began + w.rules.timeout)
	case !r.hangs() && r.began+r.takes <= w.now:
		w.succeed(r.began + r.takes)
	}
}

func (w *world) succeed(at time.Duration) {
	w.real.succeeded(w.running.takes)
	w.tally.completed++
	w.tally.longest = max(w.tally.longest, at-w.produced)
	w.produced = at
	if w.hungSince >= 0 {
		w.tally.hangs++
		w.tally.recovery += at - w.hungSince
		w.tally.worst = max(w.tally.worst, at-w.hungSince)
		w.hungSince = -1
	}
	w.leave(at, false)
}

// end is by force.
func (w *world) end(at time.Duration) {
	w.real.ended(at - w.running.began)
	if !w.running.hangs() {
		w.tally.mistakes++
		if since := w.running.number - w.load.step; w.load.step > 0 && since >= 0 && since < 200 {
			w.tally.afterStep++
		}
	}
	w.leave(at, true)
}

func (w *world) leave(at time.Duration, byForce bool) {
	if w.watch != nil {
		w.watch(ending{*w.running, at, byForce})
	}
	w.running, w.completed = nil, at
}

// ask is a newcomer: the real policy decides.
func (w *world) ask() {
	limits := w.real.limits()
	last := policy.Last{Completed: w.completed >= 0, Age: w.now - w.completed}
	active := policy.Active{}
	if w.running != nil {
		active = policy.Active{Held: true, Owner: policy.Lives, Age: w.now - w.running.began, Asked: w.running.granted}
	}
	switch policy.Decide(policy.Terms{Limits: limits}, policy.Situation{Last: last, Active: active}).Step {
	case policy.TooSoon:
		w.tooSoon++
		return
	case policy.Busy:
		return
	case policy.Expire:
		w.end(w.now)
	}
	w.begin(limits.ExpireAfter)
}

func (w *world) begin(granted time.Duration) {
	w.real.asked(w.tooSoon)
	w.tooSoon = 0
	w.running = &run{number: w.tally.runs, began: w.now, granted: granted, takes: forever}
	if w.random.Float64() >= w.load.hangs {
		w.running.takes = w.load.draw(w.random, w.tally.runs)
	} else if w.hungSince < 0 {
		w.hungSince = w.now
	}
	w.tally.runs++
}
