package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// measured are the results of the fixed limits and of auto for each load: of
// five seeds, or of as many as fit into $ADLOCK_SOAK.
var measured = sync.OnceValue(func() map[string]*[2]result {
	soak, _ := time.ParseDuration(os.Getenv("ADLOCK_SOAK")) // not set, or not a duration: short
	began := time.Now()
	results := map[string]*[2]result{}
	for _, l := range loads {
		results[l.name] = &[2]result{}
	}
	for seed := uint64(0); seed < 5 || time.Since(began) < soak; seed++ {
		for _, l := range loads {
			results[l.name][0].play(l, paper, seed, 10000)
			results[l.name][1].play(l, learned, seed, 10000)
		}
	}
	return results
})

func TestAtMostTenHealthyRunsInTenThousandAreEnded(t *testing.T) {
	for _, l := range loads {
		if got := measured()[l.name][1].per10000(); l.stationary && got > 10 {
			t.Errorf("%s: %.1f", l.name, got)
		}
	}
}

func TestAHangIsOverFourTimesSoonerWhereRunsTakeMinutes(t *testing.T) {
	for _, name := range []string{"2 min, σ 0.5, 1 % hang", "constant 3 min, 1 % hang"} {
		fixed, auto := measured()[name][0].meanRecovery(), measured()[name][1].meanRecovery()
		if auto == 0 || fixed < 4*auto {
			t.Errorf("%s: after %s, with fixed limits %s", name, auto, fixed)
		}
	}
}

func TestAStepIsLetInAfterThreeEndsAtMost(t *testing.T) {
	for _, l := range loads {
		// One seed in a hundred or so may be that unlucky; a soak meets it.
		if got := measured()[l.name][1]; l.step > 0 && got.worstAfterStep > 3 && os.Getenv("ADLOCK_SOAK") == "" {
			t.Errorf("%s: %d healthy runs were ended", l.name, got.worstAfterStep)
		}
	}
}

func TestADriftIsFollowed(t *testing.T) {
	if got := measured()["+1 % a run, 30 s to 73 min, again"][1].per10000(); got > 1 {
		t.Errorf("%.1f of 10,000 were ended", got)
	}
}

func TestNoLoadStarves(t *testing.T) {
	for _, l := range loads {
		got := measured()[l.name][1]
		if got.share() < 0.6 || got.longest > 3*24*time.Hour {
			t.Errorf("%s: %.0f %% of the runs completed, none for %s", l.name, 100*got.share(), got.longest)
		}
	}
}

func TestTheSameSeedIsTheSameWorld(t *testing.T) {
	play := func() tally { return newWorld(loads[2], learned, 7).play(500, horizon) }
	if a, b := play(), play(); a != b {
		t.Errorf("%+v and %+v", a, b)
	}
}

func TestTheTablesHaveEveryLoadAndThePlotIsXML(t *testing.T) {
	text := tables(1, 200)
	for _, l := range loads {
		if strings.Count(text, "| "+l.name+" |") != 4 {
			t.Errorf("%s is not in each table", l.name)
		}
	}
	decoder := xml.NewDecoder(strings.NewReader(string(plot())))
	for {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
