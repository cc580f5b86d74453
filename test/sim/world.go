package main

import (
	"math/rand/v2"
	"time"

	"adlock/lib/limit"
	"adlock/lib/policy"
)

// The newcomers: cron starts one each minute, and a person starts one now and then. A person also
// stops a hung run that no limit will end.
const (
	cronEvery   = time.Minute
	manualEvery = time.Hour // on average, at random
	stoppedAt   = 8 * time.Hour
)

// spinning is the share of hangs in which the job seems to work.
const spinning = 0.1

// forever is longer than any simulation.
const forever = 1 << 62 * time.Nanosecond

// world is a simulated machine with one atom. Times count from its beginning.
type world struct {
	seed   uint64
	load   load
	rules  rules
	real   limiter
	random *rand.Rand

	now              time.Duration
	nextCron, manual time.Duration // the starts to come

	running   *run
	watch     *watch
	completed time.Duration // when the atom last completed; below 0: never
	tooSoon   int           // denials since the last acquisition
	tally     tally
	hungSince time.Duration // when the last hang began, if no run has completed since; below 0: none
	hungSpins bool          // that run seems to work
	produced  time.Duration // when a run last completed with success
	onEnd     func(ending)  // called at each run's end; may be nil
}

// run is a run of the job, which holds the atom.
type run struct {
	number  int
	began   time.Duration
	takes   time.Duration // forever: it hangs
	spins   bool          // it hangs, and seems to work
	granted time.Duration // the ExpireAfter that its owner asked for
	naps    naps
}

func (r *run) hangs() bool { return r.takes == forever }

// ending is how a run ended.
type ending struct {
	run
	at      time.Duration
	byForce bool
}

// tally is the result of a simulation.
type tally struct {
	runs, completed int
	mistakes        int // healthy runs that were ended
	afterStep       int // those of the mistakes that came within the 200 runs after the step
	idle, spins     recoveries
	longest         time.Duration // without a completed run
	elapsed         time.Duration
}

// recoveries are the times from the beginning of a hang to the end of the next completed run.
type recoveries struct {
	hangs      int
	sum, worst time.Duration
}

func (r *recoveries) add(o recoveries) {
	r.hangs += o.hangs
	r.sum += o.sum
	r.worst = max(r.worst, o.worst)
}

func newWorld(l load, r rules, seed uint64) *world {
	w := &world{seed: seed, load: l, rules: r, real: r.limiter(), random: rand.New(rand.NewPCG(seed, 0)), completed: -1, hungSince: -1}
	w.manual = w.untilManual()
	return w
}

// play simulates until so many runs have begun or the time until has come.
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
	if w.watch != nil && w.watch.until <= min(w.manual, w.nextCron) {
		w.now = w.watch.until
		return
	}
	if w.manual < w.nextCron {
		w.now = w.manual
		w.manual += w.untilManual()
		return
	}
	w.now = w.nextCron
	w.nextCron += cronEvery
}

// settle ends the run if it is due to end by now.
func (w *world) settle() {
	r := w.running
	switch {
	case r == nil:
	case w.rules.timeout > 0 && r.takes > w.rules.timeout && w.now >= r.began+w.rules.timeout:
		w.end(r.began + w.rules.timeout)
	case !r.hangs() && r.began+r.takes <= w.now:
		w.succeed(r.began + r.takes)
	case w.unlimited(r) && w.now >= r.began+stoppedAt:
		w.leave(r.began+stoppedAt, true) // adlock stop teaches nothing
	}
}

// unlimited reports whether the run hangs and no limit ends it.
func (w *world) unlimited(r *run) bool {
	return r.hangs() && (r.granted == limit.Never || w.rules.watches && r.spins)
}

func (w *world) succeed(at time.Duration) {
	w.real.succeeded(w.running.takes)
	w.tally.completed++
	w.tally.longest = max(w.tally.longest, at-w.produced)
	w.produced = at
	if w.hungSince >= 0 {
		to := &w.tally.idle
		if w.hungSpins {
			to = &w.tally.spins
		}
		to.add(recoveries{1, at - w.hungSince, at - w.hungSince})
		w.hungSince = -1
	}
	w.leave(at, false)
}

// end ends the run by force.
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
	if w.onEnd != nil {
		w.onEnd(ending{*w.running, at, byForce})
	}
	w.running, w.watch, w.completed = nil, nil, at
}

// ask lets a newcomer ask for the atom. The real policy decides.
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
		if w.rules.watches && policy.WatchFirst(limits, active) && !w.watched() {
			return
		}
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
	} else {
		w.running.spins = w.random.Float64() < spinning
		if w.hungSince < 0 {
			w.hungSince, w.hungSpins = w.now, w.running.spins
		}
	}
	w.running.naps = newNaps(w, w.running)
	w.tally.runs++
}
