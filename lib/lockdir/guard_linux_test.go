package lockdir

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/test/support/need"
)

// An ending takes at most three pauses and the grace.
func TestAHolderMayStandStillForAnEndingsTime(t *testing.T) {
	need.Tools(t, "flock")
	k := newLocker(t)
	wantVerdict(t, k, ask(dead(t)), locker.Acquired)
	holder := start(t, "exec flock '"+k.Dir.Path("lock."+motdFiles)+"' sleep 60")
	active := openActive(t, k.Dir.Active, atom.Name(motdFiles))
	eventually(t, "the guard is held", func() bool { return active.GuardHolder() == holder.PID })
	if err := syscall.Kill(holder.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the holder stands still", func() bool { still, _ := process.Still(holder.PID); return still })
	defer func(grace time.Duration) { lockfile.GuardGrace = grace }(lockfile.GuardGrace)
	newcomer := ask(sleeper(t))
	newcomer.Pause = time.Hour
	for grace, want := range map[time.Duration]locker.Verdict{
		-3 * time.Hour:             locker.Stuck,
		-3*time.Hour + time.Minute: locker.Busy, // it was started less than a minute ago
		-4 * time.Hour:             locker.Stuck,
	} {
		lockfile.GuardGrace = grace
		outcome, _ := k.Take(newcomer)
		if outcome.Verdict != want {
			t.Errorf("with a grace of %v: %s, want %s", grace, outcome.Verdict, want)
		}
		reason := "busy: another process is changing the lock"
		if want == locker.Stuck {
			reason = "process " + strconv.Itoa(holder.PID) + ", which is changing the lock, is stopped"
		}
		if outcome.Reason != reason {
			t.Errorf("%s: %s", want, outcome.Reason)
		}
	}
}

// A newcomer that was stopped while it held the guard would block all others for ever, without a
// report.
func TestAGuardWhoseHolderStandsStillIsStuckAfterAnEndingsTime(t *testing.T) {
	need.Tools(t, "flock")
	k, owner := newLocker(t), sleeper(t)
	wantVerdict(t, k, ask(owner), locker.Acquired)
	holder := start(t, "exec flock '"+k.Dir.Path("lock."+motdFiles)+"' sleep 60")
	newcomer := ask(sleeper(t))
	newcomer.Limits.ExpireAfter, newcomer.Pause = 1, 0
	active, err := k.Dir.Active(motdFiles)
	if err != nil {
		t.Fatal(err)
	}
	defer active.Close()
	eventually(t, "the guard is held", func() bool { return active.GuardHolder() == holder.PID })

	defer func(grace time.Duration) { lockfile.GuardGrace = grace }(lockfile.GuardGrace)
	lockfile.GuardGrace = 0
	wantVerdict(t, k, newcomer, locker.Busy)

	if err := syscall.Kill(holder.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the holder stands still", func() bool { still, _ := process.Still(holder.PID); return still })
	outcome, err := k.Take(newcomer)
	next := "kill -CONT " + strconv.Itoa(holder.PID)
	if outcome.Verdict != locker.Stuck || err == nil || !strings.Contains(err.Error(), next) {
		t.Errorf("%v, %v; want stuck and %q", outcome.Verdict, err, next)
	}
	lockfile.GuardGrace = time.Hour
	wantVerdict(t, k, newcomer, locker.Busy)

	syscall.Kill(-holder.PGID, syscall.SIGKILL)
	if owner.Life() != process.Alive {
		t.Error("the owner was ended without the guard")
	}
	eventually(t, "the atom can be taken", func() bool {
		outcome, err := k.Take(newcomer)
		return err == nil && outcome.Verdict == locker.Acquired
	})
}
