package history

import (
	"math"
	"slices"
	"time"
)

// Durations are any number of durations, and answer "how long does it usually take" exactly. The
// zero value is empty and ready. A Durations must not be used concurrently.
//
// It keeps all of them, 8 bytes each, and sorts them when a quantile is asked for. An event yields
// at most two durations, so they take less than a tenth of the size of the runlog, which
// ADLOCK_LOG_MAX bounds. Sketches were measured with a million durations: the best of them, ddsketch
// (6 KB, 1 % of error; sorting takes 8.4 MB and 0.3 s), adds 1.8 MB to the program and a quarter to its
// starting time, and the others need more memory than sorting for less than a few thousand durations.
type Durations struct {
	values []time.Duration
	sorted bool
}

// Add adds a duration. A negative one, which comes from a step of the wall clock, counts as zero.
func (d *Durations) Add(v time.Duration) {
	d.values, d.sorted = append(d.values, max(v, 0)), false
}

// Count is how many durations were added.
func (d *Durations) Count() int { return len(d.values) }

// Min is the shortest duration; 0 if there is none.
func (d *Durations) Min() time.Duration { return d.Quantile(0) }

// Max is the longest duration; 0 if there is none.
func (d *Durations) Max() time.Duration { return d.Quantile(1) }

// Quantile is the smallest duration that a share q (0 to 1) of all does not exceed: 0.5 is the
// median, 0 the shortest, 1 the longest. 0 if there is none.
func (d *Durations) Quantile(q float64) time.Duration {
	if len(d.values) == 0 {
		return 0
	}
	d.sort()
	rank := int(math.Ceil(q * float64(len(d.values))))
	return d.values[min(max(rank, 1), len(d.values))-1]
}

// Sum is all of them together.
func (d *Durations) Sum() (sum time.Duration) {
	for _, v := range d.values {
		sum += v
	}
	return sum
}

// ByTime is the smallest of the durations such that those up to this length make up a share q (0 to
// 1) of the sum: a random instant within all durations lies in one of these with the probability q.
// 0 if there is none.
func (d *Durations) ByTime(q float64) time.Duration {
	d.sort()
	rest := q * float64(d.Sum())
	for _, v := range d.values {
		if rest -= float64(v); rest <= 0 {
			return v
		}
	}
	return d.Max()
}

// Below returns the durations shorter than v. The result shares memory with d.
func (d *Durations) Below(v time.Duration) Durations {
	d.sort()
	n, _ := slices.BinarySearch(d.values, v)
	return Durations{d.values[:n:n], true}
}

func (d *Durations) sort() {
	if !d.sorted {
		slices.Sort(d.values)
		d.sorted = true
	}
}
