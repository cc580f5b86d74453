package main

import (
	"math"
	"math/rand/v2"
	"time"
)

// load is a kind of job: how long its runs take, and how often one hangs.
type load struct {
	name       string
	stationary bool // the distribution of runtimes never changes
	step       int  // the first run of those that take longer; 0: none
	hangs      float64
	draw       func(r *rand.Rand, run int) time.Duration
}

const stepAt = 1000

// loads are those of the comparison. The first are like real jobs; for the last, a learner can do
// little.
var loads = []load{
	{name: "constant 3 min", stationary: true, draw: constant},
	{name: "lognormal 2 min, σ 0.5", stationary: true, draw: lognormal(2, 0.5)},
	{name: "lognormal 2 min, σ 1.5", stationary: true, draw: lognormal(2, 1.5)},
	{name: "5 min, 1 in 168 takes 60 min", stationary: true, draw: bimodal},
	{name: "+1 % a run, 30 s to 73 min, again", draw: drift},
	{name: "step ×5 (2 to 10 min, σ 0.5)", step: stepAt, draw: step},
	{name: "2 min, σ 0.5, 1 % hang", stationary: true, hangs: 0.01, draw: lognormal(2, 0.5)},
	{name: "constant 3 min, 1 % hang", stationary: true, hangs: 0.01, draw: constant},
	{name: "2 min, σ 1.5, 1 % hang", stationary: true, hangs: 0.01, draw: lognormal(2, 1.5)},
	{name: "5 min, 1 in 168 takes 60 min, 1 % hang", hangs: 0.01, draw: bimodal},
}

func minutes(n float64) time.Duration { return time.Duration(n * float64(time.Minute)) }

func constant(*rand.Rand, int) time.Duration { return 3 * time.Minute }

func lognormal(median, sigma float64) func(*rand.Rand, int) time.Duration {
	return func(r *rand.Rand, _ int) time.Duration {
		return minutes(median * math.Exp(sigma*r.NormFloat64()))
	}
}

// bimodal is the paper's long weekly run of an hourly job: one run in 168 is long.
func bimodal(r *rand.Rand, run int) time.Duration {
	if r.IntN(168) == 0 {
		return lognormal(60, 0.1)(r, run)
	}
	return lognormal(5, 0.1)(r, run)
}

// drift is a job whose runs get longer until its data are cleared, every 500 runs.
func drift(_ *rand.Rand, run int) time.Duration {
	return minutes(0.5 * math.Pow(1.01, float64(run%500)))
}

func step(r *rand.Rand, run int) time.Duration {
	d := lognormal(2, 0.5)(r, run)
	if run >= stepAt {
		d *= 5
	}
	return d
}
