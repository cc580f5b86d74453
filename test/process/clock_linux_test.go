package process

// These tests run the real program on atoms whose clock has stepped since they were held or
// completed. The machine's own wall clock is not changed. The tests set mtimes instead: too far
// back, as after a step forward, or in the future, as after a step back.

import (
	"os"
	"strings"
	"testing"
	"time"

	"adlock/lib/process"
	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// date sets the mtime of a file, d from now.
func date(t *testing.T, path string, d time.Duration) {
	t.Helper()
	at := time.Now().Add(d)
	must.Do(t, os.Chtimes(path, at, at))
}

// completed returns an atom whose last lock was completed d from now.
func completed(t *testing.T, d time.Duration) *helper.Atom {
	t.Helper()
	a := helper.NewAtom(t)
	a.Newcomer(t).Ran(t)
	date(t, a.Last(), d)
	return a
}

// The machine has slept for eight hours if CLOCK_BOOTTIME is so far ahead of CLOCK_MONOTONIC.
func TestALockDoesNotAgeWhileTheMachineSleeps(t *testing.T) {
	t.Parallel()
	a := helper.NewAtom(t)
	owner := a.Owner(t, "exec sleep 1000")
	a.Rewrite(t, "boottime", (process.Boottime() - 8*time.Hour).String())
	a.Newcomer(t, "--expire-after=1h", "--notice=1h").Denied(t)
	owner.Lives(t)
	a.Rewrite(t, "monotonic", (process.Monotonic() - 3*time.Hour).String())
	a.Newcomer(t, "--expire-after=2h").Ran(t)
	owner.Wait(t)
}

func TestALastLockDatedFarInTheFutureIsIgnored(t *testing.T) {
	t.Parallel()
	const hour, years = time.Hour, 365 * 24 * time.Hour
	for name, c := range map[string]struct {
		dated   time.Duration
		elapsed string
		denied  bool
	}{
		"hardly ahead":           {time.Second, "1h", true},
		"an hour ahead":          {hour, "1h", false},
		"two centuries ahead":    {200 * years, "1h", false},
		"within IfElapsed":       {-5 * hour, "6h", true},
		"for a job that is done": {-5 * hour, "never", true},
		"due":                    {-5 * hour, "4h", false},
		"before the epoch":       {-80 * years, "1h", false},
		"done before the epoch":  {-80 * years, "never", true},
	} {
		t.Run(name, func(t *testing.T) {
			a := completed(t, c.dated)
			got := a.Newcomer(t, "--if-elapsed="+c.elapsed)
			if c.denied {
				got.Denied(t)
				return
			}
			got.Ran(t)
			check.Equal(t, "the runlog tells of the clock", strings.Contains(a.Runlog(), "event=clock"), c.dated > 0)
			a.Newcomer(t, "--if-elapsed=1h").Denied(t) // stamped anew
		})
	}
}

// The clock stepped back during the last run: the start is after the completion.
func TestAStartRecordedAfterTheCompletionIsIgnored(t *testing.T) {
	t.Parallel()
	a := completed(t, -5*time.Hour)
	info := must.Get(os.Stat(a.Last()))(t)
	started := "started=" + info.ModTime().Add(time.Hour).UTC().Format(time.RFC3339Nano) + "\n"
	must.Do(t, os.WriteFile(a.Last(), []byte(started), 0o600))
	date(t, a.Last(), -5*time.Hour)
	a.Newcomer(t, "--from-start", "--if-elapsed=6h").Denied(t)
	a.Newcomer(t, "--from-start", "--if-elapsed=4h30m").Ran(t)
}

func TestALockOfAnEarlierBootIsReclaimedWhateverItsDate(t *testing.T) {
	t.Parallel()
	need.MachineID(t)
	for _, step := range []time.Duration{-5 * time.Hour, 0, 5 * time.Hour} {
		a := helper.NewAtom(t)
		stranger := a.Owner(t, "exec sleep 1000")
		a.Rewrite(t, "boot", "00000000-0000-0000-0000-000000000000")
		date(t, a.Lock(), step)
		a.Newcomer(t).Ran(t)
		stranger.Lives(t)
	}
}

// A time namespace shifts the start times that a process reads, so another start time does not prove another process.
func TestAnOwnerInAnotherTimeNamespaceIsNotTakenForDead(t *testing.T) {
	t.Parallel()
	need.Root(t)
	need.Tools(t, "unshare")
	shifted := []string{"unshare", "--time", "--fork", "--boottime", "100000"}
	a := helper.NewAtom(t)
	if got := a.Shell(t, ":", shifted...); got.Status != 0 {
		need.Skip(t, "no time namespaces here: "+got.Err)
	}
	owner := a.Owner(t, "exec sleep 1000")
	a.Shell(t, "$run echo ran", shifted...).Denied(t)
	a.Shell(t, "$run --expire-after 0 echo ran", shifted...).Refused(t, 77, "stuck: ")
	owner.Lives(t)
	owner.Kill(t)
	a.Shell(t, "$run echo ran", shifted...).Ran(t)
}
