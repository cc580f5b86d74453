package learn

import (
	"math"
	"time"

	"adlock/lib/limit"
)

// Floor and Ceiling bound ExpireAfter, unless IfElapsed is longer. Without Ceiling, a machine broken for days would
// make it endless. Without Floor, quick runs would make it too short: on a busy disk a job of a second takes minutes.
var (
	Floor   = 10 * time.Minute
	Ceiling = 7 * 24 * time.Hour
)

// Enough is how many runs must have succeeded before a limit is learned from them.
const Enough = 5

// Bounds that do not depend on the atom's runs.
const (
	LeastIfElapsed = time.Minute      // the shortest learned IfElapsed
	LeastNotice    = 15 * time.Minute // the shortest learned notice
	Prior          = 2 * time.Hour    // a guess at the longest healthy run
)

// The constants by which ExpireAfter is computed from the state.
const (
	width  = 4.0 // deviations above the mean, as in Jacobson and Karels
	narrow = 0.3 // the least deviation: a runtime that never varies gets a limit of 3.3 times its length
	unsure = 8.0 // the deviation of n runs is multiplied by 1+unsure/n
	reach  = 20  // kept doublings lengthen the limit to at most this many typical runtimes

	leastTypical = time.Minute // for reach, a typical runtime counts as no shorter than this

	beyond  = 4   // mean plus deviations is at most this many times the longest run
	outlier = 100 // the longest run counts up to this many typical runtimes, or up to Prior if that is longer
)

// IfElapsed is the learned interval, doubled up to four times while newcomers ask for the atom too often.
func (s State) IfElapsed() time.Duration {
	return s.interval() << s.stretched
}

func (s State) interval() time.Duration {
	if s.Runs < Enough {
		return LeastIfElapsed
	}
	return max(LeastIfElapsed, s.Typical().Round(time.Second))
}

// ExpireAfter is how long a run may take: no less than ifElapsed, the interval in force, unless that is never.
// Before Enough runs have succeeded it is limit.Never: a mere guess must not end a job.
func (s State) ExpireAfter(ifElapsed time.Duration) time.Duration {
	if s.Runs < Enough {
		return limit.Never
	}
	floor := s.least(ifElapsed)
	return max(floor, min(Ceiling, s.patient(max(floor, s.estimate()))).Round(time.Second))
}

// Notice is the age at which a run that no limit ends becomes overdue.
func (s State) Notice() time.Duration {
	if s.Runs < Enough {
		return Prior
	}
	return max(LeastNotice, s.ExpireAfter(0))
}

func (s State) least(ifElapsed time.Duration) time.Duration {
	if ifElapsed == limit.Never {
		return Floor
	}
	return max(Floor, ifElapsed)
}

func (s State) patient(d time.Duration) time.Duration {
	grown := doubled(d, s.doublings())
	if s.hangs || s.inARow > 1 {
		return grown
	}
	return max(d, min(grown, reach*max(leastTypical, s.Typical())))
}

func (s State) doublings() int {
	switch {
	case s.hangs:
		return s.inARow
	case s.inARow > 1:
		return s.doubled + s.inARow - 1
	}
	return s.doubled
}

func doubled(d time.Duration, times int) time.Duration {
	for ; times > 0 && d < Ceiling; times-- {
		d *= 2
	}
	return d
}

func (s State) estimate() time.Duration {
	return max(s.usual(), s.rare())
}

// Typical is how long a run takes: the geometric mean, after 32 runs with more weight on newer ones; 0 without runs.
func (s State) Typical() time.Duration { return s.runtime(s.mean) }

// usual is a time that few runs exceed. After few runs the deviation is uncertain, so usual widens it.
// The widening raises the result to Prior at most, which is a guess too.
func (s State) usual() time.Duration {
	guess := s.runtime(s.mean + width*s.deviation*(1+unsure/float64(s.Runs)))
	return max(s.wide(), min(guess, Prior))
}

// wide is mean plus width deviations. A drop of the runtimes widens it; beyond times the longest run bounds it.
func (s State) wide() time.Duration {
	return min(s.runtime(s.mean+width*s.spread()), beyond*s.Longest())
}

func (s State) spread() float64 { return max(narrow, s.deviation) }

// rare is the longest run, which a mean does not show. It has no margin, because the watch before an ending
// (lib/idle) adds one. A run longer than Prior and than outlier typical runs counts as the longer of the two.
func (s State) rare() time.Duration {
	return min(s.Longest(), max(Prior, outlier*s.Typical()))
}

// Longest is the longest runtime of the last 1,000 to 2,000 successes, at most Ceiling; 0 before the first.
func (s State) Longest() time.Duration { return s.runtime(max(s.now, s.before)) }

func (s State) runtime(x float64) time.Duration {
	if s.Runs == 0 {
		return 0
	}
	if x >= math.Log(Ceiling.Seconds()) {
		return Ceiling
	}
	return time.Duration(math.Exp(x) * float64(time.Second))
}
