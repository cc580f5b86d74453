package learn

import (
	"math"
	"time"

	"adlock/lib/limit"
	"adlock/lib/policy"
)

// The bounds of an ExpireAfter that was learned. The ceiling is there for a
// machine that was broken for days; the floor as what takes a second may take
// many while the disk is busy, and higher for a Wary one: of a job that was never
// thought about (apt-get update, say) five quick runs tell little of the sixth.
const (
	Floor     = time.Minute
	WaryFloor = 15 * time.Minute
	Ceiling   = 7 * 24 * time.Hour
)

// Enough is how many successes there must be before anything but the defaults
// is decided.
const Enough = 5

// How ExpireAfter is made of the state.
const (
	width  = 4.0 // deviations above the mean, as Jacobson and Karels have it
	narrow = 0.3 // the least deviation: 3.3 times the typical runtime where that never varies
	unsure = 8.0 // the deviation of n runs is widened by 1+unsure/n
	margin = 1.2 // above the longest run
	reach  = 20  // typical runtimes that the doublings kept may come to

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
		return policy.DefaultIfElapsed
	}
	return max(policy.DefaultIfElapsed, s.Typical().Round(time.Second))
}

// ExpireAfter is how long a run of the atom may take, where ifElapsed is in
// force (which it is never below, save never); to the second. Where too little is known
// it is the default; or, for a Wary one, never: a default would end what nobody has
// said how long it takes.
func (s State) ExpireAfter(ifElapsed time.Duration) time.Duration {
	if s.waits() {
		return limit.Never
	}
	floor := s.least(ifElapsed)
	return max(floor, min(Ceiling, s.patient(max(floor, s.estimate()))).Round(time.Second))
}

// waits says whether nothing is to be decided yet.
func (s State) waits() bool { return s.Wary && s.Runs < Enough }

func (s State) floor() time.Duration {
	if s.Wary {
		return WaryFloor
	}
	return Floor
}

func (s State) least(ifElapsed time.Duration) time.Duration {
	if ifElapsed == limit.Never {
		return s.floor()
	}
	return max(s.floor(), ifElapsed)
}

// patient is d with the doublings.
func (s State) patient(d time.Duration) time.Duration {
	switch {
	case s.hangs:
		return doubled(d, s.inARow)
	case s.inARow > 1:
		return doubled(d, s.doubled+s.inARow-1)
	case s.Runs < Enough:
		return doubled(d, s.doubled)
	}
	return max(d, min(doubled(d, s.doubled), reach*max(Floor, s.Typical())))
}

func doubled(d time.Duration, times int) time.Duration {
	for ; times > 0 && d < Ceiling; times-- {
		d *= 2
	}
	return d
}

// estimate is how long a healthy run takes at most.
func (s State) estimate() time.Duration {
	if s.Runs < Enough {
		return policy.DefaultExpireAfter
	}
	return max(s.usual(), s.rare())
}

// Typical is how long a run takes: the geometric mean. Without runs it is 0.
func (s State) Typical() time.Duration { return s.runtime(s.mean) }

// usual is what a run seldom takes longer than. A deviation of few runs is a
// guess and is widened, but not to more than the default: that is a guess too.
func (s State) usual() time.Duration {
	guess := s.runtime(s.mean + width*s.deviation*(1+unsure/float64(s.Runs)))
	return max(s.wide(), min(guess, policy.DefaultExpireAfter))
}

// wide is mean + 4 deviations. They are large for a while where the runtime
// drops all at once, and then the longest run bounds them.
func (s State) wide() time.Duration {
	return min(s.runtime(s.mean+width*s.spread()), beyond*s.Longest())
}

// spread is the deviation of the logarithm that is reckoned with.
func (s State) spread() float64 { return max(narrow, s.deviation) }

// rare is for the long run once a week, which no mean knows of. One that took
// longer than anybody would have granted it untaught is not to set the measure
// for those of a very different kind.
func (s State) rare() time.Duration {
	return min(time.Duration(margin*float64(s.Longest())), max(policy.DefaultExpireAfter, outlier*s.Typical()))
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
