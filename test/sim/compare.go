package main

import (
	"time"

	"adlock/lib/limit"
	"adlock/lib/policy"
)

// horizon ends a simulation in which no run ends any more.
const horizon = 200 * 24 * time.Hour

// result is that of one way to lock on one load, over several seeds.
type result struct {
	tally
	worstMistakes, worstAfterStep int // of one seed
	possible                      int // runs that would have completed if none hung and none was ended
}

func compare(l load, r rules, seeds, runs int) result {
	var sum result
	for seed := range uint64(seeds) {
		sum.play(l, r, seed, runs)
	}
	return sum
}

// play adds the simulation of one seed.
func (s *result) play(l load, r rules, seed uint64, runs int) {
	t := newWorld(l, r, seed).play(runs, horizon)
	s.add(t)
	s.possible += ideal(l, r, seed, t.elapsed).completed
}

func (s *result) add(t tally) {
	s.runs += t.runs
	s.completed += t.completed
	s.mistakes += t.mistakes
	s.idle.add(t.idle)
	s.spins.add(t.spins)
	s.elapsed += t.elapsed
	s.longest = max(s.longest, t.longest)
	s.worstMistakes = max(s.worstMistakes, t.mistakes)
	s.worstAfterStep = max(s.worstAfterStep, t.afterStep)
}

// ideal simulates the same load with the same smallest interval, but no run hangs and none is ended.
func ideal(l load, r rules, seed uint64, until time.Duration) tally {
	l.hangs = 0
	return newWorld(l, rules{limiter: func() limiter { return endless{r.limiter()} }}, seed).play(1<<40, until)
}

// endless is a limiter without ExpireAfter.
type endless struct{ limiter }

func (e endless) limits() policy.Limits {
	l := e.limiter.limits()
	l.ExpireAfter = limit.Never
	return l
}

// per10000 returns how many of 10,000 healthy runs were ended.
func (s *result) per10000() float64 { return 1e4 * float64(s.mistakes) / float64(s.runs) }

// mean returns the mean recovery; 0: there was none.
func (r recoveries) mean() time.Duration {
	if r.hangs == 0 {
		return 0
	}
	return r.sum / time.Duration(r.hangs)
}

// share returns which part of the possible runs completed.
func (s *result) share() float64 { return float64(s.completed) / float64(s.possible) }
