package protocol

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"adlock/lib/runlog"
	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// fight is a takeover that only a guard decides: an owner hangs and ignores signals, one
// newcomer is ending it, and another comes meanwhile. It returns what the checker finds. The
// newcomers' jobs take three seconds.
func fight(t *testing.T, binary string) error {
	need.Tools(t, "flock")
	const ignoresSignals = "1"
	r := newRound(t, binary)
	var fighters sync.WaitGroup
	come := func(name, work, wait string) {
		fighters.Go(func() {
			if err := r.run(name, attemptAt{atom: 0}, work, "--pause", "1s", "--wait", wait); err != nil {
				r.failed(err)
			}
		})
	}
	come("runOwner", ignoresSignals, "0s")
	helper.Eventually(t, "the owner's job runs", func() bool { return count(r.read(t)).acquired == 1 })
	come("runFirst", "long", "1m")
	helper.Eventually(t, "the first newcomer is ending the owner", func() bool { return r.recorded(runlog.Expire) })
	come("runSecond", "long", "0s")

	empty := make(chan struct{})
	go func() { fighters.Wait(); close(empty) }()
	r.crowd.disperse(helper.Patience, empty)
	for _, err := range r.errors {
		t.Fatal(err)
	}
	return check(r.read(t))
}

// recorded reports whether the runlog has such an event.
func (r *round) recorded(kind runlog.Kind) bool {
	for e, err := range runlog.Read(r.locks(), host) {
		if err == nil && e.Kind == kind {
			return true
		}
	}
	return false
}

func TestTheGuardDecidesWhichNewcomerTakesOver(t *testing.T) {
	if err := fight(t, helper.Binary(t)); err != nil {
		t.Error(err)
	}
}

func TestWithoutTheGuardTheCheckerFindsTwoOwners(t *testing.T) {
	const path, guard = "lib/lockdir/lockfile/active.go", "func (a *Active) Guard(wait time.Duration) error {\n"
	text, err := os.ReadFile(filepath.Join(helper.Root(), path))
	if err != nil || strings.Count(string(text), guard) != 1 {
		t.Fatalf("the guard is not in %s: %v", path, err)
	}
	binary := filepath.Join(t.TempDir(), "adlock")
	if err := (helper.Changes{path: strings.Replace(string(text), guard, guard+"return nil\n", 1)}).Build(binary); err != nil {
		t.Fatal(err)
	}
	// On a busy machine the second newcomer may come too late to do harm.
	for range 5 {
		if err := fight(t, binary); err != nil {
			t.Logf("found: %v", err)
			return
		}
	}
	t.Error("nothing found in five fights")
}
