package crash

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// asking takes and releases an atom twice: first by its agent, which is traced by then, and again
// by the agent or, if the agent is dead, by a helper run.
const asking = `
. "$root/sh/adlock.sh" || exit
adlock_agent
adlock_get warm up 0 && adlock_release || exit
agent=${_adlock_questions#/proc/}
echo "${agent%%/*}" >"$ADLOCK_DIR.agent"
until [ -e "$ADLOCK_DIR.go" ]; do sleep 0.01; done
read -r me _ </proc/self/stat
for time in first second; do
	adlock_get run job 0 || exit
	read -r owner <"$ADLOCK_DIR/lock.script.vm.run.job" || exit
	[ "$owner" = "$me" ] || exit
	adlock_release || exit
	[ ! -e "$ADLOCK_DIR/lock.script.vm.run.job" ] || exit 99
done`

// The agent dies before each of its calls that touch a file, in turn; without a soak, before every fifth.
func TestAScriptAcquiresAndReleasesThoughItsAgentDies(t *testing.T) {
	need.Tools(t, "strace")
	for _, call := range []string{"openat", "newfstatat", "fstat", "linkat", "unlinkat", "utimensat", "flock", "pread64", "write", "close"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			n, step := 1, 5
			if need.Soak {
				step = 1
			}
			for killTheAgentAt(t, call, n) && !t.Failed() {
				n += step
			}
			if n == 1 {
				t.Error("there is no such call")
			}
			t.Logf("%d deaths", (n-1)/step)
		})
	}
}

// killTheAgentAt reports whether the agent was killed at its n-th such call.
func killTheAgentAt(t *testing.T, call string, n int) (killed bool) {
	dir := filepath.Join(t.TempDir(), "locks")
	must.Do(t, os.Mkdir(dir, 0o700))
	script := filepath.Join(t.TempDir(), "script")
	must.Do(t, os.WriteFile(script, []byte(asking), 0o600))
	asker := helper.Command{
		Args: []string{"sh", script},
		Env:  []string{"ADLOCK_DIR=" + dir, "ADLOCK_HOST=vm", "ADLOCK_BIN=" + helper.Binary(t), "root=" + helper.Root()},
	}.Start(t)
	agent := ""
	helper.Eventually(t, "the agent serves", func() bool {
		text, _ := os.ReadFile(dir + ".agent")
		agent = strings.TrimSpace(string(text))
		return strings.HasSuffix(string(text), "\n")
	})
	tracer := helper.Command{Args: []string{
		"strace", "-f", "-o", dir + ".trace", "-p", agent, "-e", "trace=" + call,
		"-e", "inject=" + call + ":signal=KILL:when=" + strconv.Itoa(n),
	}}.Start(t)
	helper.Eventually(t, "each thread is traced", func() bool { return strings.Contains(tracer.Output(), " attached") })
	must.Do(t, os.WriteFile(dir+".go", nil, 0o600))
	if status := asker.Wait(t); status != 0 || asker.Output() != "" {
		t.Errorf("%s %d: status %d, and it said %q", call, n, status, asker.Output())
	}
	tracer.Wait(t) // it ends with its tracee
	text := must.Get(os.ReadFile(dir + ".trace"))(t)
	return strings.Contains(string(text), "+++ killed by SIGKILL +++")
}
