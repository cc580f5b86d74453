// Package quantile answers "how long does it usually take" for any number of
// durations in bounded memory: exactly while they fit, by a sketch beyond.
//
// The sketch counts durations in buckets whose bounds grow by a constant
// factor, so that a quantile is off by 1 % of itself at most (DDSketch: Masson,
// Rim, Lee, "A fast and fully-mergeable quantile sketch with relative-error
// guarantees", VLDB 2019). What is asked of it here needs no more than that, so
// it is written out instead of imported.
package quantile

import (
	"math"
	"sort"
	"time"
)

// fits is how many values are kept as they are: 32 KiB.
const fits = 4096

// gamma is the ratio of two neighbouring bounds; (gamma-1)/(gamma+1) is the
// error, 1 %. A nanosecond to 292 years is 2200 buckets.
const gamma = 1.01 / 0.99

// Digest holds durations. The zero value is empty and ready; it is not for
// concurrent use.
type Digest struct {
	values   []time.Duration // while they fit
	sorted   bool
	buckets  map[int]int // beyond; bucket i holds what is in (gamma^(i-1), gamma^i] nanoseconds
	count    int
	min, max time.Duration
}

// Add takes one duration. One that is not above zero counts as zero.
func (d *Digest) Add(v time.Duration) {
	v = max(v, 0)
	if d.count == 0 {
		d.min, d.max = v, v
	}
	d.min, d.max = min(d.min, v), max(d.max, v)
	d.count++
	switch {
	case d.buckets != nil:
		d.buckets[bucket(v)]++
	case len(d.values) < fits:
		d.values, d.sorted = append(d.values, v), false
	default:
		d.buckets = map[int]int{bucket(v): 1}
		for _, old := range d.values {
			d.buckets[bucket(old)]++
		}
		d.values = nil
	}
}

// Count is how many were added.
func (d *Digest) Count() int { return d.count }

// Min is the shortest, exactly; 0 where there is none.
func (d *Digest) Min() time.Duration { return d.min }

// Max is the longest, exactly; 0 where there is none.
func (d *Digest) Max() time.Duration { return d.max }

// Exact says whether quantiles are exact, or else within 1 %.
func (d *Digest) Exact() bool { return d.buckets == nil }

// Quantile is the smallest value added that a share q (0 to 1) of all does not
// exceed: 0.5 is the median. 0 where there is none.
func (d *Digest) Quantile(q float64) time.Duration {
	if d.count == 0 {
		return 0
	}
	rank := min(max(int(math.Ceil(q*float64(d.count))), 1), d.count)
	if d.buckets == nil {
		if !d.sorted {
			sort.Sort(byLength(d.values))
			d.sorted = true
		}
		return d.values[rank-1]
	}
	return min(max(d.inBuckets(rank), d.min), d.max)
}

func (d *Digest) inBuckets(rank int) time.Duration {
	order := make([]int, 0, len(d.buckets))
	for i := range d.buckets {
		order = append(order, i)
	}
	sort.Ints(order)
	for _, i := range order {
		if rank -= d.buckets[i]; rank <= 0 {
			return middle(i)
		}
	}
	return d.max
}

// zero is the bucket of 0, below all others.
const zero = math.MinInt32

func bucket(v time.Duration) int {
	if v == 0 {
		return zero
	}
	return int(math.Ceil(math.Log(float64(v)) / math.Log(gamma)))
}

// middle is off by the same ratio from both bounds of a bucket.
func middle(i int) time.Duration {
	if i == zero {
		return 0
	}
	v := 2 * math.Exp(float64(i)*math.Log(gamma)) / (gamma + 1)
	if v >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(math.Round(v))
}

// byLength sorts with the code that the program has already: slices.Sort would
// be another 8 KB for a type of its own.
type byLength []time.Duration

func (s byLength) Len() int           { return len(s) }
func (s byLength) Less(i, j int) bool { return s[i] < s[j] }
func (s byLength) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
