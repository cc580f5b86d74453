package learn

import (
	"math"
	"time"
)

// How the state moves. The figures in the package comment were found with these.
const (
	gain     = 1.0 / 32    // of a run in the mean and the deviation, once there are more
	quickest = time.Second // what a shorter run counts as: nothing is decided on less
	epoch    = 1000        // successes: of this many and those before the longest run is remembered

	tries     = 3    // doublings kept for runs that were ended now and then
	calm      = 1000 // successes without an end by force after which one of them goes
	mostInRow = 64   // ends by force in a row that are counted: beyond any limit

	// Spam is so many requests too soon in each unstretched IfElapsed, if they
	// come as often as this too, which no cron does. Half of it is calm.
	spam      = 20
	spamEvery = 20 * time.Second
	stretches = 4 // doublings of IfElapsed at most
)

// State is what the runs of one atom have taught. The zero value knows nothing.
// It is not for concurrent use.
type State struct {
	Runs int // successes so far

	mean, deviation float64 // of the logarithm of the runtime in seconds
	now, before     float64 // the longest runtime's, in this epoch and the one before

	ended   time.Duration // the lowest age at which a run was ended; 0: none was, or it was wrong
	doubled int           // doublings kept
	inARow  int           // ends by force since the last success
	since   int           // successes since the last end by force
	hangs   bool          // the doublings led to no longer success: those runs had hung

	stretched int // doublings of IfElapsed
}

// Succeeded teaches the runtime of a run that completed with success.
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

// average is Jacobson and Karels' filter; the first runs count alike.
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

// Ended teaches that a run was ended by force at this age, which it had been
// granted: all it says is that the run would have taken longer, if it had not
// hung.
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

// Asked teaches how often the atom was asked for too soon between its last two
// runs, and reports whether that changes anything.
func (s *State) Asked(tooSoon int) bool {
	each := tooSoon >> s.stretched // in each unstretched IfElapsed
	many := max(spam, int(s.interval()/spamEvery))
	switch {
	case each >= many && s.stretched < stretches:
		s.stretched++
	case each < many/2 && s.stretched > 0:
		s.stretched--
	default:
		return false
	}
	return true
}

// Spammed reports whether IfElapsed is stretched.
func (s State) Spammed() bool { return s.stretched > 0 }
