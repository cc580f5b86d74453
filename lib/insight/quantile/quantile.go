// Package quantile answers "how long does it usually take": exactly, for any
// number of durations.
//
// It keeps them all, 8 bytes each, and sorts them when it is asked. An event
// brings two of them at most, so they take less than a tenth of what the runlog
// takes on the disk, which ADLOCK_LOG_MAX bounds. Sketches, which need less, were
// measured with a million durations of one atom, where sorting takes 8.4 MB and
// 0.3 s:
//
//	                                memory   a duration   error
//	DataDog/sketches-go/ddsketch    6 KB     80 ns        1 %
//	HdrHistogram/hdrhistogram-go    41 KB    30 ns        0.5 %
//	caio/go-tdigest                 30 KB    1600 ns      0.03 %
//	influxdata/tdigest              206 KB   1100 ns      0.04 %
//	beorn7/perks/quantile           33 KB    1700 ns      1.2 %
//	slices.Sort                     8.4 MB   200 ns       0
//
// The best of them, ddsketch, adds 1.8 MB to a program of 4.5 MB (it has protocol
// buffers in it) and a quarter to the time it takes to start; the others need
// more memory than sorting where an atom has less than a few thousand durations,
// as most have.
package quantile

import (
	"math"
	"slices"
	"time"
)

// Durations are any number of durations. The zero value is none and ready; it
// is not for concurrent use.
type Durations struct {
	values []time.Duration
	sorted bool
}

// Add takes one duration. One below zero counts as zero: a step of the wall
// clock, not a duration.
func (d *Durations) Add(v time.Duration) {
	d.values, d.sorted = append(d.values, max(v, 0)), false
}

// Count is how many were added.
func (d *Durations) Count() int { return len(d.values) }

// Min is the shortest; 0 if there is none.
func (d *Durations) Min() time.Duration { return d.Quantile(0) }

// Max is the longest; 0 if there is none.
func (d *Durations) Max() time.Duration { return d.Quantile(1) }

// Quantile is the smallest duration that a share q (0 to 1) of all does not exceed: 0.5 is the
// median, 0 the shortest, 1 the longest. 0 if there is none.
func (d *Durations) Quantile(q float64) time.Duration {
	if len(d.values) == 0 {
		return 0
	}
	if !d.sorted {
		slices.Sort(d.values)
		d.sorted = true
	}
	rank := int(math.Ceil(q * float64(len(d.values))))
	return d.values[min(max(rank, 1), len(d.values))-1]
}
