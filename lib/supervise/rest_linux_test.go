package supervise

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/test/support/must"
)

// A newcomer that is killed while it ends the job leaves the job in this state: the command has died of TERM, and a
// child ignores TERM. mksh does not die of a signal: it exits with 129 at HUP, with 143 at TERM.
func TestAKilledCommandsJobLastsUntilItsChildrenEnd(t *testing.T) {
	for end, status := range map[string]int{
		"kill -TERM $$": 143, "exit 129": 129, "exit 130": 130, "exit 131": 131, "exit 137": 137, "exit 143": 143,
	} {
		st := rehearse(t, setup{Args: sh("", "sleep 300 >/dev/null 2>&1 & echo $!; "+end)})
		st.begin()
		var child int
		await(t, "the child's pid", func() bool { n, _ := fmt.Sscan(st.out.String(), &child); return n == 1 })
		st.mustStay()
		signalTo(t, child, syscall.SIGKILL)
		rep := st.wantEnd(status)
		if killed := rep.Result.Signal == syscall.SIGTERM; killed != strings.HasPrefix(end, "kill") {
			t.Errorf("%s: %+v", end, rep.Result)
		}
	}
}

func TestTERMEndsChildrenThatOutlivedTheCommand(t *testing.T) {
	dir := t.TempDir()
	st := rehearse(t, setup{Args: sh(dir, `(trap '' INT TERM; exec sleep 60 >/dev/null 2>&1) & echo $! >"$1/child"; kill -KILL $$`)})
	supervisor := st.begin().PID
	child := pidIn(t, filepath.Join(dir, "child"))
	await(t, "the command's death", func() bool { return parentOf(t, child) == supervisor })
	signalTo(t, supervisor, syscall.SIGTERM)
	if rep := st.wantEnd(137); !rep.Result.Ended {
		t.Errorf("%+v", rep.Result)
	}
	mustBeGone(t, child)
}

// leaver is a command that ends at once, by itself, and leaves a child behind.
const leaver = `(trap '' INT TERM; exec sleep 300 >/dev/null 2>&1) & echo $! >"$1/child"; exit 6`

// whileBeingEnded starts a job that counts as being ended by another process while the file st.setup.BeingEnded
// exists. It returns once the command is gone and only the command's child, which ignores INT and TERM, is left.
func whileBeingEnded(t *testing.T, s setup) (st *stage, child int) {
	t.Helper()
	dir := t.TempDir()
	s.BeingEnded, s.Args = filepath.Join(dir, "ending"), sh(dir, leaver)
	must.Do(t, os.WriteFile(s.BeingEnded, nil, 0o600))
	st = rehearse(t, s)
	supervisor := st.begin().PID
	child = pidIn(t, filepath.Join(dir, "child"))
	await(t, "the supervisor to inherit the child", func() bool { return parentOf(t, child) == supervisor })
	await(t, "the child to be deaf", func() bool { return called(child) == "sleep" })
	return st, child
}

// mustStay fails if the supervisor exits within 0.3 s.
func (st *stage) mustStay() {
	st.t.Helper()
	select {
	case err := <-st.over:
		st.t.Fatalf("the supervisor is gone: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
}

func TestASupervisorStaysWithOrphansWhileANewcomerEndsTheJob(t *testing.T) {
	for _, dies := range []bool{true, false} { // the child, or else the ending stops
		st, child := whileBeingEnded(t, setup{})
		st.mustStay()
		if dies {
			signalTo(t, child, syscall.SIGKILL)
		} else {
			must.Do(t, os.Remove(st.setup.BeingEnded))
			defer syscall.Kill(child, syscall.SIGKILL)
		}
		if rep := st.wantEnd(6); rep.Result.Ended || len(rep.Signals) != 0 || lives(child) == dies {
			t.Errorf("the child dies: %v: %+v, signals %v", dies, rep.Result, rep.Signals)
		}
	}
}

func TestASupervisorSendsNoSignalWhileANewcomerEndsTheJob(t *testing.T) {
	for claim, s := range map[string]setup{
		"signal":   {Pause: time.Millisecond},
		"enforced": {Pause: time.Millisecond, Enforce: true, ExpireAfter: time.Millisecond},
	} {
		t.Run(claim, func(t *testing.T) {
			st, child := whileBeingEnded(t, s)
			if !s.Enforce {
				signalTo(t, st.report().PID, syscall.SIGTERM)
			}
			st.mustStay()
			if !lives(child) {
				t.Error("the child was ended by both")
			}
			must.Do(t, os.Remove(st.setup.BeingEnded))
			if _, rep := st.end(); rep.Err != "" {
				t.Errorf("%+v, error %q", rep.Result, rep.Err)
			}
			mustBeGone(t, child)
		})
	}
}

// daemon is a command that ends by itself and leaves a daemon in a session of its own. The daemon
// lives until the FIFO is opened.
const daemon = `setsid sh -c 'echo $$ >"$1/daemon"; read -r x <"$1/fifo"' daemon "$1" >/dev/null 2>&1 &
	until [ -s "$1/daemon" ]; do sleep 0.01; done; exit 6`

// wholeJob starts a job that leaves a daemon behind, and returns when only the daemon is left.
func wholeJob(t *testing.T, s setup, ready func(*stage)) (st *stage, daemonPID int, dir string) {
	t.Helper()
	dir = t.TempDir()
	must.Do(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	s.WholeJob, s.Args = true, sh(dir, daemon)
	st = rehearse(t, s)
	ready(st)
	supervisor := st.begin().PID
	daemonPID = pidIn(t, filepath.Join(dir, "daemon"))
	t.Cleanup(func() { syscall.Kill(daemonPID, syscall.SIGKILL) })
	await(t, "the supervisor to have inherited the daemon", func() bool { return exists(st.setup.Report + ".recorded") })
	if parent := parentOf(t, daemonPID); parent != supervisor {
		t.Fatalf("the daemon's parent is %d", parent)
	}
	return st, daemonPID, dir
}

func asItIs(*stage) {}

func TestAWholeJobEndsWithItsLastDaemon(t *testing.T) {
	st, pid, dir := wholeJob(t, setup{}, asItIs)
	st.mustStay()
	if recorded := pidIn(t, st.setup.Report+".recorded"); recorded != pid {
		t.Errorf("recorded is %d, not the daemon %d", recorded, pid)
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "fifo"), []byte("go\n"), 0))
	if rep := st.wantEnd(6); rep.Result.Ended || len(rep.Signals) != 0 {
		t.Errorf("%+v, signals %v", rep.Result, rep.Signals)
	}
}

func TestOfTooManyDaemonsAsManyAsFitAreRecorded(t *testing.T) {
	dir := t.TempDir()
	st := rehearse(t, setup{WholeJob: true, Pause: time.Millisecond, Args: sh(dir, fmt.Sprintf(`i=0
		while [ $i -le %d ]; do i=$((i + 1)); setsid sh -c 'echo >"$1/d.$2"; exec sleep 613' sh "$1" $i >/dev/null 2>&1 & done
		until set -- "$1" "$1"/d.* && [ $# -gt $i ]; do set -- "$1"; sleep 0.01; done; exit 6`, mostRecorded))})
	supervisor := st.begin().PID
	recorded := func() int { return len(strings.Fields(read(t, st.setup.Report+".recorded"))) }
	await(t, "the daemons to be recorded", func() bool { return exists(st.setup.Report+".recorded") && recorded() == mostRecorded })
	signalTo(t, supervisor, syscall.SIGTERM)
	st.wantEnd(6)
}

func TestSignalsReachTheDaemonOfAWholeJob(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1} {
		st, pid, _ := wholeJob(t, setup{Pause: patience}, asItIs) // patience: only the signal ends it
		signalTo(t, st.report().PID, sig)
		if rep := st.wantEnd(6); rep.Result.Ended != (sig != syscall.SIGUSR1) || len(rep.Signals) != 1 {
			t.Errorf("%v: %+v, signals %v", sig, rep.Result, rep.Signals)
		}
		mustBeGone(t, pid)
	}
}

func TestCtrlCEndsTheDaemonOfAWholeJob(t *testing.T) {
	var terminal *os.File
	st, pid, _ := wholeJob(t, setup{Pause: time.Millisecond}, func(st *stage) { terminal = st.onTerminal(false) })
	st.mustStay()
	typeKey(t, terminal, controlC)
	if rep := st.wantEnd(6); !rep.Result.Ended {
		t.Errorf("%+v", rep.Result)
	}
	mustBeGone(t, pid)
}

func TestEnforceEndsTheDaemonOfAWholeJob(t *testing.T) {
	s := enforced(t)
	s.Pause = time.Millisecond
	st, pid, _ := wholeJob(t, s, asItIs)
	st.expire()
	if rep := st.wantEnd(124); !rep.Result.Expired {
		t.Errorf("%+v", rep.Result)
	}
	mustBeGone(t, pid)
}
