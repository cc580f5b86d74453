package network

import (
	"strings"
	"testing"

	"adlock/test/support/helper"
)

// taught runs the host's atom five times with success.
func (h *host) taught(t testing.TB) {
	t.Helper()
	for range 5 {
		h.run(t, "echo ran", "--expire-after=auto").Ran(t)
	}
}

func TestLimitsAreLearnedInTheStore(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, a, b *host) {
		a.explains(t, "ExpireAfter never: 0 successful runs, fewer than 5: no limit until there are 5", "--expire-after=auto")
		a.taught(t)
		b.explains(t, `ExpireAfter 10m: 5 successful runs`, "--expire-after=auto")
		b.wants(t, `(?m)^p o x +5 `, "tune")

		b.run(t, "echo ran").Ran(t) // a run that does not learn forgets nothing
		b.run(t, "exit 3", "--expire-after=auto")
		b.explains(t, `ExpireAfter 10m: 5 successful runs`, "--expire-after=auto")
		owner := a.start(t, "sleep 60", "--expire-after=auto")
		b.wants(t, `(?m)^p o x +running .* \d+s / 10m learned`, "status")
		b.verb(t, "tune", "--reset", "p o x").Refused(t, 75, "is held: try again when its owner has ended")
		stop(t, owner)
		b.explains(t, `ExpireAfter 10m: 5 successful runs`, "--expire-after=auto")
	})
}

// A run that was ended at its limit teaches that the limit was too short, even if it does not count for
// IfElapsed and so nothing has completed.
func TestARunThatDoesNotCountForIfElapsedIsStillLearnedFrom(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, a, b *host) {
		a.run(t, "sleep 60", "--if-elapsed=auto", "--expire-after=1s", "--enforce", "--retry-failed").Is(t, 124, "…", "…")
		b.run(t, "echo ran", "--if-elapsed=1h").Ran(t)
		a.taught(t)
		b.explains(t, "doubled", "--expire-after=auto")
	})
}

// If an owner dies, no process can report how the run went.
func TestAScriptThatEndsWithoutAReleaseTeachesNothing(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, a, b *host) {
		script := func(then string) {
			if r := a.script(`adlock_get o x 0 auto || exit; ` + then).Run(t); r.Err != "" {
				t.Errorf("%+v", r)
			}
			helper.Eventually(t, "it is released", func() bool { return !strings.Contains(b.verb(t, "status").Out, "running") })
		}
		script("adlock_release")
		script("exit 0")
		script("kill -KILL $$")
		b.explains(t, "ExpireAfter never: 1 successful run, fewer than 5", "--expire-after=auto")
	})
}
