package atom

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/lib/process"
	"adlock/test/need"
)

// A newcomer that was stopped while it held the guard would keep everybody out
// for ever, and nobody would be told.
func TestAGuardWhoseHolderStandsStillIsStuckAfterAnEndingsTime(t *testing.T) {
	need.Tools(t, "flock")
	k, owner := newKeeper(t), sleeper(t)
	wantVerdict(t, k, ask(owner), Acquired)
	holder := start(t, "exec flock '"+k.Dir.Path("lock."+motdFiles)+"' sleep 60")
	newcomer := ask(sleeper(t))
	newcomer.Limits.ExpireAfter, newcomer.Pause = 0, 0
	active, err := k.Dir.Active(motdFiles)
	if err != nil {
		t.Fatal(err)
	}
	defer active.Close()
	eventually(t, "the guard is held", func() bool { return active.GuardHolder() == holder.PID })

	defer func(grace time.Duration) { guardGrace = grace }(guardGrace)
	guardGrace = 0
	wantVerdict(t, k, newcomer, Busy)

	if err := syscall.Kill(holder.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the holder stands still", func() bool { still, _ := process.Still(holder.PID); return still })
	outcome, err := k.Take(newcomer)
	next := "kill -CONT " + strconv.Itoa(holder.PID)
	if outcome.Verdict != Stuck || err == nil || !strings.Contains(err.Error(), next) {
		t.Errorf("%v, %v; want stuck and %q", outcome.Verdict, err, next)
	}
	guardGrace = time.Hour
	wantVerdict(t, k, newcomer, Busy)

	syscall.Kill(-holder.PGID, syscall.SIGKILL)
	if owner.Life() != process.Alive {
		t.Error("the owner was ended beside the guard")
	}
	eventually(t, "the atom can be taken", func() bool {
		outcome, err := k.Take(newcomer)
		return err == nil && outcome.Verdict == Acquired
	})
}
