package protocol

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// fight is a takeover that only a guard decides: an owner hangs and ignores signals, one newcomer is
// ending it, and another comes meanwhile. It reports whether two jobs met: each job locks a file of the
// test's own until its last process ends.
func fight(t *testing.T, binary string) (met bool) {
	t.Helper()
	need.Tools(t, "flock")
	a, dir := helper.NewAtom(t), t.TempDir()
	a.Bin = binary
	alone := "exec 9>>" + dir + "/held; flock -n 9 || : >" + dir + "/met; "
	newcomer := func(wait string) *helper.Process {
		script := "exec $run --expire-after=0 --wait=" + wait + ` -- sh -c "$0"`
		return helper.Command{Args: []string{"sh", "-c", script, alone + "sleep 2"}, Env: a.Env()}.Start(t)
	}
	a.Supervised(t, alone+`trap '' INT TERM; echo >`+dir+`/hangs; sleep 1000; :`)
	helper.Eventually(t, "the owner hangs", func() bool { return exists(dir + "/hangs") })
	first := newcomer("1m")
	helper.Eventually(t, "the first ends the owner", func() bool { return strings.Contains(a.Runlog(), "event=expire") })
	second := newcomer("0s")
	first.Wait(t)
	second.Wait(t)
	return exists(dir + "/met")
}

var exists = helper.Exists

func TestNoTwoJobsRunAtOnceWithTheGuard(t *testing.T) {
	if fight(t, helper.Binary(t)) {
		t.Error("two jobs met")
	}
}

func TestTwoJobsRunAtOnceWithoutTheGuard(t *testing.T) {
	const path, guard = "lib/lockdir/lockfile/active.go", "func (a *Active) Guard(wait time.Duration) error {\n"
	text, err := os.ReadFile(filepath.Join(helper.Root(), path))
	if err != nil || strings.Count(string(text), guard) != 1 {
		t.Fatalf("the guard is not in %s: %v", path, err)
	}
	binary := filepath.Join(t.TempDir(), "adlock")
	must.Do(t, (helper.Changes{path: strings.Replace(string(text), guard, guard+"return nil\n", 1)}).Build(binary))
	// On a busy machine the second newcomer may come too late to do harm.
	for range 5 {
		if fight(t, binary) {
			return
		}
	}
	t.Error("no two jobs met in five fights")
}
