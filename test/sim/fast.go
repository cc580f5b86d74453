package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"adlock/lib/learn"
)

// quick is a rule that would report a successful run as too short to be sensible.
type quick struct {
	name       string
	deviations float64 // below the mean
	shortest   bool    // and shorter than each of the last one to two thousand runs
}

var quicks = []quick{
	{"mean - 4 deviations", 4, false}, {"and the shortest of late", 4, true}, {"3 deviations, and the shortest", 3, true},
}

// lengths are what a quick rule keeps of past runs: the same as lib/learn, and the shortest runs.
type lengths struct {
	runs            int
	mean, deviation float64 // of the logarithm
	now, before     float64 // the shortest of this thousand runs, and of the one before
}

func (q quick) reports(l *lengths, x float64) bool {
	least := l.mean - q.deviations*max(0.3, l.deviation)*(1+8/float64(l.runs))
	if q.shortest {
		least = min(least, l.now, l.before)
	}
	return l.runs >= learn.Enough && x < least
}

func (l *lengths) add(x float64) {
	if l.runs++; l.runs == 1 {
		*l = lengths{1, x, 0, x, x}
	}
	share, off := max(1.0/32, 1/float64(l.runs)), x-l.mean
	l.mean += share * off
	l.deviation += share * (math.Abs(off) - l.deviation)
	if l.runs%1000 == 0 {
		l.before, l.now = l.now, x
	}
	l.now = min(l.now, x)
}

// quickCell is how many of 1,000 healthy runs a rule reports, and which percentage of them it would
// report if each took a tenth of its time.
func quickCell(l load, q quick, seeds, runs int) string {
	var wrong, caught, all float64
	for seed := range uint64(seeds) {
		random, known := rand.New(rand.NewPCG(seed, 0)), lengths{}
		for number := range runs {
			x := math.Log(l.draw(random, number).Seconds())
			if q.reports(&known, x) {
				wrong++
			}
			if q.reports(&known, x-math.Ln10) {
				caught++
			}
			known.add(x)
			all++
		}
	}
	return fmt.Sprintf("%.1f, %.0f %%", 1000*wrong/all, 100*caught/all)
}

// quickTable compares the quick rules on the loads without hangs.
func quickTable(w *strings.Builder, seeds, runs int) {
	w.WriteString("| Too quick: told of 1,000 healthy runs; of runs a tenth as long |")
	for _, q := range quicks {
		w.WriteString(" " + q.name + " |")
	}
	w.WriteString("\n| --- |" + strings.Repeat(" ---: |", len(quicks)) + "\n")
	for _, l := range loads {
		if l.hangs > 0 {
			continue
		}
		w.WriteString("| " + l.name + " |")
		for _, q := range quicks {
			w.WriteString(" " + quickCell(l, q, seeds, runs) + " |")
		}
		w.WriteString("\n")
	}
}
