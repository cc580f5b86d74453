// Package crash kills adlock before each of its system calls that touch a lock or the runlog,
// one after the other, and tests what newcomers make of what is left.
package crash

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
	"adlock/test/support/steps"
)

func TestMain(m *testing.M) { helper.Main(m) }

const killed = 128 + 9

func TestExactlyOneNewcomerAcquiresTheAtomAfterACrash(t *testing.T) {
	drawn := steps.Drawn(t)
	for _, scenario := range steps.Scenarios {
		t.Run(scenario.Name, func(t *testing.T) {
			t.Parallel()
			points, crashes := 0, 0
			for _, call := range drawn[scenario.Name] {
				points += len(call.Points)
				crashes += crashAtEach(t, scenario, call)
			}
			if need.Soak && (points < 20 || crashes < 20) {
				t.Errorf("%d points, %d crashes: the calls were not found", points, crashes)
			}
			t.Logf("%d points, %d crashes", points, crashes)
		})
	}
}

// crashAtEach kills the step before each drawn call, in a soak before its first such call, its
// second, … until it ends untouched, and returns the number of kills.
func crashAtEach(t *testing.T, scenario steps.Scenario, call steps.Call) (crashes int) {
	crash := func(n int) (crashed bool) {
		passed := t.Run(fmt.Sprintf("%s-%d", call.Name, n), func(t *testing.T) {
			crashed = !crashAt(t, scenario, steps.Injection{Call: call.Name, What: "signal=KILL", When: n})
		})
		if crashed {
			crashes++
		}
		return crashed && passed
	}
	if need.Soak {
		for n := call.Points[0].When; crash(n); n++ {
		}
		return crashes
	}
	for _, point := range call.Points {
		crash(point.When)
	}
	return crashes
}

func crashAt(t *testing.T, scenario steps.Scenario, at steps.Injection) (survived bool) {
	s := steps.NewStage(t, scenario, at)
	status := s.Play()
	if s.Completed() && !s.Locked() && !s.Stamped() {
		t.Error("the lock is gone, and the run does not count")
	}
	s.Last()
	if s.Newcomers(3) == 1 && s.Inside() == 1 {
		t.Error("a newcomer got the atom beside its owner")
	}
	s.Last()
	s.EndActor()
	check.Equal(t, "newcomers that got the atom", s.Newcomers(3), 1)
	s.BystandersAreUnhurt()
	check.Equal(t, "the newcomer's run was stamped", s.Last().Unix() != 0, true)
	s.NoTwoSharedTheAtom()
	s.TemporariesAreSwept()
	s.RunlogIsWhole(false)
	if status != killed && status != scenario.Want {
		t.Errorf("status %d: %s", status, s.Trouble())
	}
	return status != killed
}

// A tool that changes a last lock holds the active lock meanwhile. If it is killed, the next
// newcomer must reclaim the lock at once, even after another process got its pid: a lock with
// only a pid is busy as long as any process has that pid.
func TestALockLeftByAKilledVerbIsReclaimedAtOnce(t *testing.T) {
	need.Tools(t, "strace")
	for verb, call := range map[string]string{
		"clear --last --older=0":          "unlinkat",
		"tune --reset=" + helper.AtomName: "/^renameat",
	} {
		t.Run(verb, func(t *testing.T) {
			a := helper.NewAtom(t)
			a.Newcomer(t, "--expire-after=auto").Ran(t)
			// No --seccomp-bpf: a signal injected at a stop for a seccomp event is lost (ptrace(2)).
			if r := a.Shell(t, "strace -f -qq -o /dev/null -e trace="+call+" -e inject="+call+":signal=KILL:when=1 $adlock "+verb); r.Status != killed {
				t.Fatalf("it was not killed: %+v", r)
			}
			stranger := helper.Command{Args: []string{"sleep", "600"}}.Start(t)
			_, rest, _ := strings.Cut(string(must.Get(os.ReadFile(a.Lock()))(t)), "\n")
			must.Do(t, os.WriteFile(a.Lock(), []byte(strconv.Itoa(stranger.PID)+"\n"+rest), 0o600)) // it has the tool's pid now
			a.Newcomer(t).Ran(t)
			stranger.Lives(t)
		})
	}
}
