//go:build soak

package network

import (
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"adlock/test/support/helper"
	"adlock/test/support/must"
)

func TestTuneResetDoesNotCountAsACompletion(t *testing.T) {
	onEachStore(t, func(t *testing.T, a, b *host) {
		a.taught(t)
		time.Sleep(3 * time.Second) // an age that differs from 0 if times are whole seconds
		b.wants(t, "^$", "tune", "--reset", "p o x")
		b.wants(t, "^no atom has learned anything", "tune")
		a.explains(t, "ExpireAfter never: 0 successful runs", "--expire-after=auto")
		a.explains(t, "^too soon: completed ([3-9]|[1-9][0-9])s", "--if-elapsed=1h")
		a.run(t, "echo ran", "--if-elapsed=2s").Ran(t)
	})
}

// hasty programs learn limits of seconds, and watch a job for only one or two.
var hasty = sync.OnceValues(func() (string, error) { return buildBoth("hasty", helper.Hasty) })

func TestALearnedLimitInAStoreEndsOnlyAnIdleJob(t *testing.T) {
	onEachStore(t, func(t *testing.T, a, b *host) {
		bin := must.Get(hasty())(t)
		a.bin, b.bin = bin, bin
		a.taught(t)
		works := a.start(t, ready+"while sleep 0.2; do echo; done >/dev/null", "--expire-after=auto")
		said := ""
		helper.Eventually(t, "it is overdue, and works", func() bool {
			r := b.run(t, "echo ran", "--expire-after=auto")
			said += r.Err
			return r.Status == 75 && strings.Contains(said, "o x: overdue, and works (")
		})
		if r := b.run(t, "", "--expire-after=auto", "--dry-run"); !strings.Contains(r.Out, ", and it works (") || works.Ended() {
			t.Errorf("%+v, ended: %v", r, works.Ended())
		}
		b.run(t, "echo ran", "--expire-after=1s").Ran(t) // an explicit limit
		works.Wait(t)

		a.taught(t)
		idle := a.start(t, ready+"exec sleep 600", "--expire-after=auto")
		r := b.run(t, "echo ran", "--expire-after=auto", "--wait=80s")
		if r.Ran(t); !regexp.MustCompile(`past its learned limit of \d+s and idle for \d+s`).MatchString(r.Err) {
			t.Errorf("said %q", r.Err)
		}
		idle.Wait(t)
	})
}

func TestAnOwnerLearnsFromBeingAskedToEndItsJob(t *testing.T) {
	onEachStore(t, func(t *testing.T, a, b *host) {
		owner := a.start(t, "sleep 60", "--if-elapsed=auto", "--expire-after=1s")
		helper.Eventually(t, "it has expired", func() bool { return strings.Contains(b.verb(t, "status").Out, " overdue ") })
		b.run(t, "echo ran", "--expire-after=1s").Ran(t)
		owner.Wait(t)
		a.taught(t)
		b.explains(t, "doubled", "--expire-after=auto")
	})
}
