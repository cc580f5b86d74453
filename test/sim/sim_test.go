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

// measured returns the results of the learned limit for each load and each way in which healthy runs sleep:
// of two seeds, or of as many as fit into $ADLOCK_SOAK.
var measured = sync.OnceValue(func() map[string]*[3]result {
	soak, _ := time.ParseDuration(os.Getenv("ADLOCK_SOAK")) // 0 if not set, or not a duration
	began := time.Now()
	results := map[string]*[3]result{}
	for _, l := range loads {
		results[l.name] = &[3]result{}
	}
	for seed := uint64(0); seed < 2 || time.Since(began) < soak; seed++ {
		for _, l := range loads {
			for i, r := range []rules{working, brief, learned} {
				results[l.name][i].play(l, r, seed, 10000)
			}
		}
	}
	return results
})

func TestNoHealthyRunThatWorksIsEnded(t *testing.T) {
	for _, l := range loads {
		if got := measured()[l.name][0].mistakes; got > 0 {
			t.Errorf("%s: %d", l.name, got)
		}
	}
}

func TestAtMostOneOf10000RunsThatSleepBrieflyIsEnded(t *testing.T) {
	for _, l := range loads {
		if got := measured()[l.name][1].per10000(); got > 1 {
			t.Errorf("%s: %.1f", l.name, got)
		}
	}
}

func TestAtMost15Of10000RunsThatSleepForLongAreEnded(t *testing.T) {
	for _, l := range loads {
		if got := measured()[l.name][2].per10000(); got > 15 {
			t.Errorf("%s: %.1f", l.name, got)
		}
	}
}

func TestAHangIsEndedWithin25MinutesOnAverage(t *testing.T) {
	for _, name := range []string{"2 min, σ 0.5, 1 % hang", "constant 3 min, 1 % hang"} {
		if got := measured()[name][1].idle.mean(); got == 0 || got > 25*time.Minute {
			t.Errorf("%s: after %s", name, got)
		}
	}
}

func TestASpinningJobRunsUntilAPersonStopsIt(t *testing.T) {
	for _, l := range loads {
		if got := measured()[l.name][1].spins.mean(); l.hangs > 0 && got < stoppedAt {
			t.Errorf("%s: over after %s", l.name, got)
		}
	}
}

func TestAtMost3HealthyRunsAreEndedAfterAStepInRuntimes(t *testing.T) {
	for _, l := range loads {
		// About one seed in a hundred exceeds this, and a soak plays that many.
		if got := measured()[l.name][2]; l.step > 0 && got.worstAfterStep > 3 && os.Getenv("ADLOCK_SOAK") == "" {
			t.Errorf("%s: %d healthy runs were ended", l.name, got.worstAfterStep)
		}
	}
}

func TestLearnedLimitsFollowSlowlyGrowingRuntimes(t *testing.T) {
	if got := measured()["+1 % a run, 30 s to 73 min, again"][2].per10000(); got > 1 {
		t.Errorf("%.1f of 10,000 were ended", got)
	}
}

func TestMostRunsCompleteUnderEveryLoad(t *testing.T) {
	for _, l := range loads {
		got := measured()[l.name][2]
		if got.share() < 0.6 || got.longest > 3*24*time.Hour {
			t.Errorf("%s: %.0f %% of the runs completed, none for %s", l.name, 100*got.share(), got.longest)
		}
	}
}

func TestTheSameSeedGivesTheSameResult(t *testing.T) {
	play := func() tally { return newWorld(loads[2], learned, 7).play(500, horizon) }
	if a, b := play(), play(); a != b {
		t.Errorf("%+v and %+v", a, b)
	}
}

func TestTheTablesHaveEveryLoadAndThePlotIsXML(t *testing.T) {
	text := tables(1, 200)
	for _, l := range loads {
		if got, want := strings.Count(text, "| "+l.name+" |"), 5; got != want && (l.hangs > 0 || got != want-1) {
			t.Errorf("%s is in %d tables", l.name, got)
		}
	}
	decoder := xml.NewDecoder(strings.NewReader(string(plot())))
	var err error
	for err == nil {
		_, err = decoder.Token()
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
}
