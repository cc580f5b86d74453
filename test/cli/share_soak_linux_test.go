//go:build soak

package cli

import (
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"adlock/test/support/helper"
	"adlock/test/support/need"
)

func TestAHandOverWakesNoneOfAThousandWaiters(t *testing.T) {
	wakesNoOther(t, 100, 900)
}

func TestManyContendersShareTheAtomAsEvenlyAsWithFlock(t *testing.T) {
	need.Tools(t, "flock")
	s := newStage(t)
	const contenders, turns = 64, 10_000
	// spread is how many turns the luckiest of the contenders has more than the unluckiest.
	spread := func(words []string) int {
		var turn atomic.Int64
		got := make([]int, contenders)
		var all sync.WaitGroup
		for n := range got {
			all.Go(func() {
				for turn.Add(1) <= turns {
					c := exec.Command(words[0], words[1:]...)
					c.Env = append(os.Environ(), "ADLOCK_DIR="+s.locks)
					if out, err := c.CombinedOutput(); err != nil {
						t.Errorf("%v: %s", err, out)
						return
					}
					got[n]++
				}
			})
		}
		all.Wait()
		return slices.Max(got) - slices.Min(got)
	}
	// Each asks whether another is within, and leaves a mark if so.
	within := `mkdir within || : >"$PWD/two"; rmdir within`
	flock := spread([]string{"flock", s.in("file"), "sh", "-c", "cd '" + s.dir + "' && " + within})
	adlock := spread([]string{helper.Binary(t), "run", "--name", "a", "--wait", "forever", "sh", "-c", "cd '" + s.dir + "' && " + within})
	t.Logf("%d turns of %d contenders: the most and the fewest differ by %d, with flock by %d", turns, contenders, adlock, flock)
	if adlock > flock {
		t.Errorf("the most and the fewest turns differ by %d, with flock by %d", adlock, flock)
	}
	if exists(s.in("two")) {
		t.Error("two were within at once")
	}
}
