package crash

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// A tool that changes a last lock holds the active lock meanwhile. If it is killed, the next
// newcomer must reclaim the lock at once, even after another process got its pid: a lock with
// only a pid is busy as long as any process has that pid.
func TestAKilledToolLeavesALockThatNamesItsOwner(t *testing.T) {
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
			mustBeOfTheDead(t, a.Lock())
			stranger := helper.Command{Args: []string{"sleep", "600"}}.Start(t)
			handOver(t, a.Lock(), stranger.PID)
			a.Newcomer(t).Ran(t)
			if stranger.Ended() {
				t.Error("the stranger was ended")
			}
		})
	}
}

func mustBeOfTheDead(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("it was not killed under its lock: %v", err)
	}
	found, content := record.Parse(text)
	if content != record.Full || found.Owner.Life() != process.Dead || found.Atom.Name() != helper.AtomName {
		t.Errorf("content %d:\n%s", content, text)
	}
}

// handOver gives the pid of a lock's owner to another process.
func handOver(t *testing.T, path string, pid int) {
	t.Helper()
	text := must.Get(os.ReadFile(path))(t)
	_, rest, _ := strings.Cut(string(text), "\n")
	must.Do(t, os.WriteFile(path, []byte(strconv.Itoa(pid)+"\n"+rest), 0o600))
}
