package supervise

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"adlock/lib/fault"
	"adlock/lib/limit"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

func TestEnforceEndsEachProcessOfTheJob(t *testing.T) {
	dir, s := t.TempDir(), enforced(t)
	s.Pause, s.Args = 100*time.Millisecond, sh(dir, `trap '' INT TERM
		setsid sleep 300 & echo $! >"$1/session"
		sh -c 'sleep 300 & echo $! >"$1/orphan"' sh "$1"
		echo $$ >"$1/shell"
		while :; do sleep 300; done`)
	st := rehearse(t, s)
	st.begin()
	var pids []int
	for _, name := range []string{"session", "orphan", "shell"} {
		pids = append(pids, pidIn(t, filepath.Join(dir, name)))
	}
	st.mustStay()
	st.expire()
	rep := st.wantEnd(fault.StatusExpired)
	if !rep.Result.Expired || !slices.Contains(rep.Signals, "KILL") || rep.Expires != 0 {
		t.Errorf("%+v, signals %v, and before the event: %d", rep.Result, rep.Signals, rep.Expires)
	}
	mustBeGone(t, pids...)
}

func TestEnforceUsesTheLearnedLimit(t *testing.T) {
	const works = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep 0.3; echo $i; done; exit 3"
	for _, c := range []struct {
		claim  string
		watch  time.Duration
		script string
		status int
	}{
		{"without a watch", 0, "sleep 300", fault.StatusExpired},
		{"an idle job", time.Second, "sleep 300; :", fault.StatusExpired},
		{"a job that works", 2 * time.Second, works, 3},
	} {
		s := setup{Enforce: true, ExpireAfter: time.Hour, Learned: 100 * time.Millisecond, Watch: c.watch}
		s.Args = sh("", c.script)
		r := rehearse(t, s).wantPlay(c.status).Result
		expired := c.status == fault.StatusExpired
		if r.Expired != expired || expired && r.Idle < c.watch || !expired && r.Idle != 0 {
			t.Errorf("%s: %+v", c.claim, r)
		}
	}
}

func TestEnforceDoesNotTouchAJobWithinItsLimit(t *testing.T) {
	for _, after := range []time.Duration{time.Hour, limit.Never} {
		rep := rehearse(t, setup{Enforce: true, ExpireAfter: after, Args: sh("", "exit 3")}).wantPlay(3)
		if rep.Result.Expired {
			t.Errorf("%v: %+v", after, rep.Result)
		}
	}
}

func TestASupervisorOutlivesAJobThatItMayNotSignal(t *testing.T) {
	need.Root(t) // to run a job of another user
	for claim, s := range map[string]setup{
		"enforced":    enforced(t),
		"told to end": {Pause: time.Millisecond},
	} {
		t.Run(claim, func(t *testing.T) { staysWithAForeignJob(t, s) })
	}
}

func staysWithAForeignJob(t *testing.T, s setup) {
	dir := openToAll(t)
	s.Role = "foreign"
	s.Args = []string{"/bin/sh", "-c", `"$0" "$1"`, copyOfThis(t, dir, "job", 0o755|os.ModeSetuid), filepath.Join(dir, "pid")}
	st := rehearse(t, s)
	st.setup.Report = filepath.Join(dir, "report")
	st.cmd.Args[4] = copyOfThis(t, dir, "supervisor", 0o755)
	st.cmd.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	rep := st.begin()
	job := pidIn(t, filepath.Join(dir, "pid"))
	if s.Enforce {
		st.expire()
	} else {
		signalTo(t, rep.PID, syscall.SIGTERM)
	}
	await(t, "it is stuck", func() bool { return len(st.report().Stuck) > 0 })
	if got, want := st.report().Stuck[0], fmt.Sprintf("process %d (job) of user 0: operation not permitted", job); got != want {
		t.Errorf("stuck: %q, want %q", got, want)
	}
	st.mustStay()
	if !lives(job) {
		t.Error("the job did not live on")
	}
	st.stdin.Close()
	want := 143
	if s.Enforce {
		want = 5
	}
	status, rep := st.end()
	if status != want || rep.Result.Expired || rep.Expires >= 0 || len(rep.Stuck) != 1 {
		t.Errorf("status %d, %+v", status, rep)
	}
}

func TestAFailedEndingIsTriedAgain(t *testing.T) {
	dir := t.TempDir()
	st := rehearse(t, setup{Enforce: true, ExpireAfter: time.Millisecond, Pause: time.Millisecond, Refuses: filepath.Join(dir, "no"),
		Args: sh(dir, `sleep 300 & echo $! >"$1/child"; trap "" INT TERM; wait`)})
	must.Do(t, os.WriteFile(st.setup.Refuses, nil, 0o600))
	st.begin()
	child := pidIn(t, filepath.Join(dir, "child"))
	await(t, "it is stuck", func() bool { return len(st.report().Stuck) > 0 })
	if !lives(child) {
		t.Error("it was signalled")
	}
	must.Do(t, os.Remove(st.setup.Refuses))
	if status, rep := st.end(); status != fault.StatusExpired || !rep.Result.Expired || len(rep.Stuck) != 1 {
		t.Errorf("status %d, %+v", status, rep)
	}
	mustBeGone(t, child)
}

// openToAll returns a directory in which any user can write files.
func openToAll(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "adlock") // others may not enter TMPDIR
	if err == nil {
		err = os.Chmod(dir, 0o777)
	}
	must.Do(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// copyOfThis copies this program to a place where any user may run it.
func copyOfThis(t *testing.T, dir, name string, mode os.FileMode) string {
	t.Helper()
	program := filepath.Join(dir, name)
	must.Do(t, need.WriteProgram(program, []byte(read(t, os.Args[0])), 0o755))
	must.Do(t, os.Chmod(program, mode))
	return program
}
