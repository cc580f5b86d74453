package main

import (
	"time"

	"adlock/lib/limit"
	"adlock/lib/policy"
)

// horizon ends a simulation in which nothing runs any more.
const horizon = 200 * 24 * time.Hour

// result is what one way to lock makes of one load, over several seeds.
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

// play adds one seed.
func (s *result) play(l load, r rules, seed uint64, runs int) {
	t := newWorld(l, r, seed).play(runs, horizon)
	s.add(t)
	s.possible += ideal(l, r, seed, t.elapsed).completed
}

func (s *result) add(t tally) {
	s.runs += t.runs
	s.completed += t.completed
	s.mistakes += t.mistakes
	s.hangs += t.hangs
	s.recovery += t.recovery
	s.elapsed += t.elapsed
	s.worst = max(s.worst, t.worst)
	s.longest = max(s.longest, t.longest)
	s.worstMistakes = max(s.worstMistakes, t.mistakes)
	s.worstAfterStep = max(s.worstAfterStep, t.afterStep)
}

// ideal is the same with the same smallest interval, where no run hangs and
// none is ended.
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

// per10000 is how many healthy runs of 10,000 were ended.
func (s *result) per10000() float64 { return 1e4 * float64(s.mistakes) / float64(s.runs) }

// meanRecovery is from the beginning of a hang to the end of the next
// completed run; 0 where no hang was recovered from.
func (s *result) meanRecovery() time.Duration {
	if s.hangs == 0 {
		return 0
	}
	return s.recovery / time.Duration(s.hangs)
}

// share is what completed of what could have.
func (s *result) share() float64 { return float64(s.completed) / float64(s.possible) }
