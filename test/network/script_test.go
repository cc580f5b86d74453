package network

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/test/support/helper"
	"adlock/test/support/must"
)

// scripted is a script that has taken the atom.
type scripted struct {
	*helper.Process
	pid    int
	errors string // the file with all its standard error
	ended  string // a file that exists when the reader of the pipe has reached its end
}

// startScript starts a script that takes the atom and then runs rest. Its standard error is a pipe, as under cron.
func (h *host) startScript(t testing.TB, rest string) scripted {
	t.Helper()
	dir := t.TempDir()
	s := scripted{errors: dir + "/errors", ended: dir + "/ended"}
	c := h.script("adlock_get o x 0 || exit; echo $$ >" + dir + "/pid; mv " + dir + "/pid " + dir + "/has; " + rest)
	c.Args = []string{"sh", "-c", `"$@" 2>&1 | cat >` + s.errors + `; touch ` + s.ended, "sh", "sh", "-c", c.Args[2]}
	s.Process = c.Start(t)
	helper.Eventually(t, "the script has the atom", func() bool {
		if exists(s.ended) {
			t.Fatalf("it ended: %s", s.said(t))
		}
		return exists(dir + "/has")
	})
	text := must.Get(os.ReadFile(dir + "/has"))(t)
	s.pid = int(number(t, string(text)))
	return s
}

// said waits for the end of the pipe, and returns what the script and other processes wrote.
func (s scripted) said(t testing.TB) string {
	t.Helper()
	helper.Eventually(t, "no process keeps its standard error open", func() bool { return exists(s.ended) })
	text := must.Get(os.ReadFile(s.errors))(t)
	return string(text)
}

// holderOf returns the pid of the holder for this owner.
func holderOf(t testing.TB, owner int) int {
	t.Helper()
	want := "--owner\x00" + itoa(owner) + "\x00"
	processes, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range processes {
		line, _ := os.ReadFile(file) // it may have gone
		words := strings.SplitN(string(line), "\x00", 3)
		if len(words) == 3 && words[1] == "holder" && strings.HasPrefix(words[2], want) {
			return int(number(t, filepath.Base(filepath.Dir(file))))
		}
	}
	t.Fatal("it has no holder")
	return 0
}

// A holder runs in the root directory.
func TestAScriptsHolderFindsFilesByRelativePaths(t *testing.T) {
	t.Parallel()
	c := startFTP(t, "").host(t).script(`cd "$ADLOCK_DIR"; cp "$ADLOCK_FTP_PASSWORD_FILE" secret; mkdir logs
export ADLOCK_FTP_PASSWORD_FILE=secret ADLOCK_LOGDIR=logs; adlock_get o x 0 && adlock_release; grep -c "event=release" logs/*`)
	c.Run(t).Is(t, 0, "1\n", "")
}

func TestTheNextHolderRemovesTheFilesOfAKilledHolder(t *testing.T) {
	t.Parallel()
	h := startFTP(t, "").host(t)
	left := h.startScript(t, "sleep 60")
	must.Do(t, syscall.Kill(holderOf(t, left.pid), syscall.SIGKILL))
	left.said(t) // the watchdog has ended it
	old := time.Now().Add(-2 * time.Minute)
	files := globbed(t, h.dir+"/smith.*")
	for _, file := range files {
		must.Do(t, os.Chtimes(file, old, old))
	}
	gate := t.TempDir() + "/gate"
	next := h.startScript(t, until(gate)+"adlock_release")
	helper.Eventually(t, "what was left is gone", func() bool { return !slices.ContainsFunc(files, exists) })
	if own := globbed(t, h.dir+"/smith.*"); len(own) != 2 {
		t.Errorf("besides %v there is %v", files, own)
	}
	touch(t, gate)
	if said := next.said(t); said != "" {
		t.Errorf("said %q", said)
	}
}

// The script leads no group or session: what it leaves behind is known by its mark alone.
func TestWhatAKilledScriptLeavesHoldsItsAtomUntilEnded(t *testing.T) {
	t.Parallel()
	a, b := onEtcd(t)
	file := t.TempDir() + "/beats"
	left := a.startScript(t, "sh -c '"+beats(file)+"'; exit")
	helper.Eventually(t, "it beats", func() bool { return exists(file) })
	must.Do(t, syscall.Kill(left.pid, syscall.SIGKILL))
	b.run(t, "echo ran", "--wait=2s").Denied(t)
	b.follows(t, file, "--expire-after=1s")
}
