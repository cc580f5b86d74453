package learn

import (
	"math"
	"time"
)

// The figures in the package comment were measured with these values.
const (
	gain     = 1.0 / 32    // the least share of a run in the mean and the deviation
	quickest = time.Second // a shorter run counts as this long
	epoch    = 1000        // successes in an epoch; the longest run of this and the previous epoch counts

	tries     = 3    // at most this many doublings are kept for runs that are ended now and then
	calm      = 1000 // after this many successes without an end by force, one kept doubling is dropped
	mostInRow = 64   // at most this many ends by force in a row are counted: their doublings exceed any limit

	// IfElapsed is doubled if at least this many requests come too soon in each interval(), and at least
	// one each spamEvery, which is more often than cron starts jobs. With fewer than half as many it is halved.
	spam      = 20
	spamEvery = 20 * time.Second
	stretches = 4 // doublings of IfElapsed at most
)

// State is what was learned from the runs of one atom. The zero State knows of no run. It is not for concurrent use.
type State struct {
	Runs int // successes so far

	mean, deviation float64 // of the logarithm of the runtime in seconds
	now, before     float64 // logarithm of the longest runtime of this and the previous epoch

	ended   time.Duration // the lowest age of an end by force; 0: none, or it no longer counts (Succeeded, calmDown)
	doubled int           // doublings kept
	inARow  int           // ends by force since the last success
	since   int           // successes since the last end by force or calmDown
	hangs   bool          // the ended runs count as hangs: no success took longer despite the doublings

	stretched int // doublings of IfElapsed
}

func (s *State) Succeeded(runtime time.Duration) {
	x := math.Log(max(runtime, quickest).Seconds())
	s.Runs++
	s.average(x)
	s.remember(x)
	s.inARow = 0
	if s.ended > 0 && runtime > s.ended { // so the runs that were ended may have been healthy
		s.ended, s.hangs, s.doubled = 0, false, min(s.doubled, 1)
	}
	if s.since++; s.since >= calm {
		s.calmDown()
	}
}

// average is Jacobson and Karels' filter, except that the first 1/gain runs have equal weights.
func (s *State) average(x float64) {
	if s.Runs == 1 {
		s.mean = x
	}
	share := max(gain, 1/float64(s.Runs))
	off := x - s.mean
	s.mean += share * off
	s.deviation += share * (math.Abs(off) - s.deviation)
}

func (s *State) remember(x float64) {
	if s.Runs%epoch == 0 {
		s.before, s.now = s.now, 0
	}
	s.now = max(s.now, x)
}

func (s *State) calmDown() {
	s.since, s.hangs, s.doubled = 0, false, max(0, s.doubled-1)
	if s.doubled == 0 {
		s.ended = 0
	}
}

// Ended learns from a run that was ended by force at this age: it hung or would have taken longer.
func (s *State) Ended(age time.Duration) {
	s.since = 0
	if s.ended == 0 || age < s.ended {
		s.ended = age
	}
	s.inARow = min(s.inARow+1, mostInRow)
	if s.inARow > 1 || s.hangs {
		return
	}
	if s.doubled++; s.doubled > tries {
		s.doubled, s.hangs = 0, true
	}
}

// Asked learns from the number of requests that came too soon between two runs.
func (s *State) Asked(tooSoon int) {
	each := tooSoon >> s.stretched // in each unstretched IfElapsed
	many := max(spam, int(s.interval()/spamEvery))
	switch {
	case each >= many && s.stretched < stretches:
		s.stretched++
	case each < many/2 && s.stretched > 0:
		s.stretched--
	}
}

// Spammed reports whether IfElapsed is stretched.
func (s State) Spammed() bool { return s.stretched > 0 }

// Field is one value of a state, as a file stores it. Fields returns them in the file's order.
type Field struct {
	Key   string
	Value any // a pointer; a zero value is left out
}

func (s *State) Fields() [11]Field {
	return [...]Field{
		{"learn.runs", &s.Runs},
		{"learn.mean", &s.mean}, {"learn.deviation", &s.deviation},
		{"learn.longest", &s.now}, {"learn.longest_before", &s.before},
		{"learn.ended", &s.ended}, {"learn.doubled", &s.doubled}, {"learn.ended_in_a_row", &s.inARow}, {"learn.since_ended", &s.since},
		{"learn.hangs", &s.hangs}, {"learn.stretched", &s.stretched},
	}
}

// IsValid reports whether runs can have led to the state. A file may hold anything, even NaN.
func (s State) IsValid() bool {
	return min(s.mean, s.deviation, s.now, s.before) >= 0 && max(s.mean, s.deviation, s.now, s.before) < 40 &&
		s.ended >= 0 && s.doubled <= tries && s.inARow <= mostInRow && s.since <= calm && s.stretched <= stretches
}
