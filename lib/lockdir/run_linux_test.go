package lockdir

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"adlock/lib/locker"
	"adlock/lib/process"
)

func TestATakeoversLockIsNoOlderThanTheDeathOfTheOwner(t *testing.T) {
	k, ready := newLocker(t), filepath.Join(t.TempDir(), "ready")
	deaf := start(t, `trap "" INT TERM; : >'`+ready+`'; while :; do sleep 1; done`)
	eventually(t, "the owner ignores signals", func() bool { _, err := os.Stat(ready); return err == nil })
	wantVerdict(t, k, ask(deaf), locker.Acquired)
	newcomer := hasty(sleeper(t))
	newcomer.Pause = time.Second / 2
	began := process.Boottime()
	wantVerdict(t, k, newcomer, locker.Acquired)
	if into := lockOf(t, k).Record.Boottime - began; into < 2*newcomer.Pause {
		t.Errorf("the lock is from %v after the first signal, when the owner lived", into)
	}
}

func TestARunWithoutFromStartReplacesTheOldStart(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	r := ask(owner)
	r.FromStart = true
	release(t, k, wantVerdict(t, k, r, locker.Acquired))
	last, err := k.Dir.Last(motdFiles)
	must(t, err)
	last.Memory.Started = time.Now().Add(-2 * time.Hour)
	must(t, k.Dir.Remember(motdFiles, time.Now().Add(-time.Hour), last.Memory))
	release(t, k, wantVerdict(t, k, ask(owner), locker.Acquired))
	r.Limits.IfElapsed = 30 * time.Minute
	wantVerdict(t, k, r, locker.TooSoon)
}
