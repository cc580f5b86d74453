package network

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/test/support/check"
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
func TestAScriptsLocksmithFindsFilesByRelativePaths(t *testing.T) {
	t.Parallel()
	c := startFTP(t, "").host(t).script(`cd "$ADLOCK_DIR"; cp "$ADLOCK_FTP_PASSWORD_FILE" secret; mkdir logs
export ADLOCK_FTP_PASSWORD_FILE=secret ADLOCK_LOGDIR=logs; adlock_get o x 0 && adlock_release; grep -c "event=release" logs/*`)
	c.Run(t).Is(t, 0, "1\n", "")
}

func TestTheNextLocksmithRemovesTheFilesOfAKilledLocksmith(t *testing.T) {
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
	check.Equal(t, "files of the holder", len(globbed(t, h.dir+"/smith.*")), 2)
	touch(t, gate)
	check.Equal(t, "said", next.said(t), "")
}

// The watchdog of the next waiter starts while that waiter waits, so that a hand-over does not wait
// for it. The waiters behind have no watchdogs. A waiter that gives up leaves no watchdog.
func TestOnlyTheNextWaiterHasAWatchdog(t *testing.T) {
	t.Parallel()
	nodes := startEtcd(t, 1)
	h := newHost(t, url(nodes...))
	first, second := t.TempDir()+"/first", t.TempDir()+"/second" // the owners go when these are there
	watchdogs := func(p *helper.Process, want int) {
		t.Helper()
		claim := fmt.Sprintf("process %d has %d watchdogs", p.PID, want)
		helper.Eventually(t, claim, func() bool { return len(helper.WatchdogsOf(p.PID)) == want })
	}
	queued := 1
	owner := h.start(t, until(first))
	waits := func(script string) *helper.Process {
		t.Helper()
		p := h.command(script, "--wait=60s").Start(t)
		queued++
		helper.Eventually(t, "it is in the queue", func() bool {
			return len(keysOf(t, nodes, "/adlock/p.shared.o.x/line/")) == queued
		})
		return p
	}
	next := waits(until(second))
	watchdogs(next, 1)
	third, fourth := waits("exit 5"), waits("exit 6")
	check.Equal(t, "watchdogs behind the next", len(helper.WatchdogsOf(third.PID))+len(helper.WatchdogsOf(fourth.PID)), 0)
	touch(t, first)
	endsWith(t, owner, 0, "")
	watchdogs(owner, 0)
	watchdogs(third, 1)
	check.Equal(t, "watchdogs of the owner", len(helper.WatchdogsOf(next.PID)), 1)
	stop(t, third) // it leaves the queue
	watchdogs(third, 0)
	watchdogs(fourth, 1)
	fourth.Kill(t)
	watchdogs(fourth, 0)
	touch(t, second)
	endsWith(t, next, 0, "")
}

// The watchdog of a lease must begin before the client libraries are initialised: otherwise it, and
// the process that starts it, would take three times as long to start.
func TestTheWatchdogBeginsBeforeClientLibrariesAreInitialised(t *testing.T) {
	t.Parallel()
	smith := filepath.Join(filepath.Dir(binary(t)), "adlock-locksmith")
	r := helper.Command{Args: []string{smith, "--version"}, Env: []string{"GODEBUG=inittrace=1"}}.Run(t)
	early := strings.Index(r.Err, "\ninit adlock/cmd/adlock-locksmith/early ")
	if early < 0 {
		t.Fatalf("%+v", r)
	}
	for _, library := range []string{"google.golang.org/grpc", "google.golang.org/protobuf/reflect/protodesc", "go.etcd.io/etcd/api/v3/etcdserverpb"} {
		if at := strings.Index(r.Err, "\ninit "+library+" "); at < early {
			t.Errorf("%s is initialised at %d, before %d", library, at, early)
		}
	}
}

// The script leads no group or session: what it leaves behind is known by its mark alone.
func TestLeftoverProcessesOfAKilledScriptHoldItsAtom(t *testing.T) {
	t.Parallel()
	a, b := onEtcd(t)
	file := t.TempDir() + "/beats"
	left := a.startScript(t, "sh -c '"+beats(file)+"'; exit")
	helper.Eventually(t, "it beats", func() bool { return exists(file) })
	must.Do(t, syscall.Kill(left.pid, syscall.SIGKILL))
	b.run(t, "echo ran", "--wait=2s").Denied(t)
	b.follows(t, file, "--expire-after=1s")
}
