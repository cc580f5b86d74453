package main

import (
	"math/rand/v2"
	"slices"
	"time"

	"adlock/lib/idle"
)

// watch is a newcomer that watches whether the owner's job works. Its outcome is known when it begins.
type watch struct {
	until time.Duration // the job works or ends then, or was idle for the whole watch
	idle  bool
}

// watched reports whether a watch that found the job idle ends now. If no newcomer watches yet, this one
// starts to.
func (w *world) watched() bool {
	if w.watch == nil {
		w.watch = w.look(idle.Length(w.real.typical()))
	}
	if w.now < w.watch.until {
		return false
	}
	wasIdle := w.watch.idle
	w.watch = nil
	return wasIdle
}

func (w *world) look(length time.Duration) *watch {
	if works := w.running.works(w.now); works < w.now+length {
		return &watch{until: works}
	}
	return &watch{until: w.now + length, idle: true}
}

// works returns the first instant, from from on, at which the job works. The end of the run counts
// as work, because it ends a watch.
func (r *run) works(from time.Duration) time.Duration {
	switch {
	case r.spins:
		return from
	case r.hangs():
		return forever
	}
	return r.began + min(r.takes, r.naps.awake(from-r.began))
}

// sleep is the mean spell for which a healthy run sleeps at a time.
type sleep func(l load, r *run, random *rand.Rand) time.Duration

// short is a tenth of a typical run of the load, long a tenth of the run itself, however long.
func short(l load, r *run, random *rand.Rand) time.Duration { return l.typical(random, r.number) / 10 }
func long(_ load, r *run, _ *rand.Rand) time.Duration       { return r.takes / 10 }

// typical returns the median of some runs of the load.
func (l load) typical(random *rand.Rand, number int) time.Duration {
	var runs [99]time.Duration
	for i := range runs {
		runs[i] = l.draw(random, number)
	}
	slices.Sort(runs[:])
	return runs[len(runs)/2]
}

// naps are the sleeps of one run. It works and sleeps by turns, for spells of the same mean, so it
// sleeps half of the time. With the zero naps it never sleeps. Times count from the run's start.
type naps struct {
	random   *rand.Rand
	mean     time.Duration
	from, to time.Duration // the nap at, or after, the last instant passed to awake
}

// newNaps uses a random source of its own, so that runtimes do not depend on how the runs sleep.
func newNaps(w *world, r *run) naps {
	if w.rules.sleep == nil || r.hangs() {
		return naps{}
	}
	random := rand.New(rand.NewPCG(w.seed, uint64(r.number)+1))
	return naps{random: random, mean: w.rules.sleep(w.load, r, random)}
}

// awake returns the first instant, from at on, at which the run is awake. at must not go back from
// call to call.
func (n *naps) awake(at time.Duration) time.Duration {
	if n.mean == 0 {
		return at
	}
	for n.to <= at {
		n.from = n.to + n.spell()
		n.to = n.from + n.spell()
	}
	if at < n.from {
		return at
	}
	return n.to
}

func (n *naps) spell() time.Duration {
	return 1 + time.Duration(n.random.ExpFloat64()*float64(n.mean))
}
