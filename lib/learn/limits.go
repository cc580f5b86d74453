package learn

import (
	"math"
	"time"

	"adlock/lib/limit"
)

// The bounds of an ExpireAfter that was learned. The ceiling is there for a machine that was
// broken for days; the floor as quick runs tell little of the next one: what takes a second
// takes minutes where the disk is busy, and apt-get update takes longer where there is news.
// Variables for tests.
var (
	Floor   = 15 * time.Minute
	Ceiling = 7 * 24 * time.Hour
)

// Enough is how many successes there must be before anything is decided.
const Enough = 5

// What is assumed where too little is known.
const (
	LeastIfElapsed = time.Minute   // an IfElapsed that is learned is never shorter
	Prior          = 2 * time.Hour // a healthy run takes no longer: as a guess that few runs cannot refute
)

// How ExpireAfter is made of the state.
const (
	width  = 4.0 // deviations above the mean, as Jacobson and Karels have it
	narrow = 0.3 // the least deviation: 3.3 times the typical runtime where that never varies
	unsure = 8.0 // the deviation of n runs is widened by 1+unsure/n
	margin = 1.2 // above the longest run
	reach  = 20  // typical runtimes that the doublings kept may come to

	leastTypical = time.Minute // what a shorter one counts as there

	beyond  = 4   // longest runs that the deviations may come to
	outlier = 150 // typical runtimes that the longest run is believed up to
)

// IfElapsed is the atom's own smallest interval: its typical runtime, so that
// it is held half of the time at most, and no less than the default; doubled up
// to four times while it is asked for too often.
func (s State) IfElapsed() time.Duration {
	return s.interval() << s.stretched
}

func (s State) interval() time.Duration {
	if s.Runs < Enough {
		return LeastIfElapsed
	}
	return max(LeastIfElapsed, s.Typical().Round(time.Second))
}

// ExpireAfter is how long a run of the atom may take, where ifElapsed is in force (which it
// is never below, save never); to the second. Where too little is known it is never: nothing is
// ended on a guess.
func (s State) ExpireAfter(ifElapsed time.Duration) time.Duration {
	if s.Runs < Enough {
		return limit.Never
	}
	floor := s.least(ifElapsed)
	return max(floor, min(Ceiling, s.patient(max(floor, s.estimate()))).Round(time.Second))
}

// Notice is the age from which on a run that no limit ends is overdue: what ExpireAfter would
// be, or Prior where too little is known.
func (s State) Notice() time.Duration {
	if s.Runs < Enough {
		return Prior
	}
	return s.ExpireAfter(0)
}

func (s State) least(ifElapsed time.Duration) time.Duration {
	if ifElapsed == limit.Never {
		return Floor
	}
	return max(Floor, ifElapsed)
}

// patient is d with the doublings.
func (s State) patient(d time.Duration) time.Duration {
	grown := doubled(d, s.doublings())
	if s.hangs || s.inARow > 1 {
		return grown
	}
	return max(d, min(grown, s.most()))
}

// doublings is how often the limit is doubled, as runs were ended by force.
func (s State) doublings() int {
	switch {
	case s.hangs:
		return s.inARow
	case s.inARow > 1:
		return s.doubled + s.inARow - 1
	}
	return s.doubled
}

// most is what the doublings kept may come to.
func (s State) most() time.Duration { return reach * max(leastTypical, s.Typical()) }

func doubled(d time.Duration, times int) time.Duration {
	for ; times > 0 && d < Ceiling; times-- {
		d *= 2
	}
	return d
}

// estimate is how long a healthy run takes at most.
func (s State) estimate() time.Duration {
	return max(s.usual(), s.rare())
}

// Typical is how long a run takes: the geometric mean. Without runs it is 0.
func (s State) Typical() time.Duration { return s.runtime(s.mean) }

// usual is what a run seldom takes longer than. A deviation of few runs is a
// guess and is widened, but not to more than Prior: that is a guess too.
func (s State) usual() time.Duration {
	guess := s.runtime(s.mean + width*s.deviation*(1+unsure/float64(s.Runs)))
	return max(s.wide(), min(guess, Prior))
}

// wide is mean + 4 deviations. They are large for a while where the runtime
// drops all at once, and then the longest run bounds them.
func (s State) wide() time.Duration {
	return min(s.runtime(s.mean+width*s.spread()), beyond*s.Longest())
}

// spread is the deviation of the logarithm that is reckoned with.
func (s State) spread() float64 { return max(narrow, s.deviation) }

// rare is for the long run once a week, which no mean knows of. One that took
// longer than a person would have granted it untaught is not to set the measure
// for those of a very different kind.
func (s State) rare() time.Duration {
	return min(time.Duration(margin*float64(s.Longest())), max(Prior, outlier*s.Typical()))
}

// Longest is the longest run of the last one to two thousand.
func (s State) Longest() time.Duration { return s.runtime(max(s.now, s.before)) }

// runtime is the inverse of the logarithm that is remembered, at most Ceiling.
func (s State) runtime(x float64) time.Duration {
	if s.Runs == 0 {
		return 0
	}
	if x >= math.Log(Ceiling.Seconds()) {
		return Ceiling
	}
	return time.Duration(math.Exp(x) * float64(time.Second))
}
