package crash

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

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
			if stranger.Ended() {
				t.Error("the stranger was ended")
			}
		})
	}
}
