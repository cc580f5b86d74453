package cli

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// leaves is a command that leaves a daemon in a session of its own, and ends.
const leaves = `setsid sleep 600 >/dev/null 2>&1 & until grep -qx sleep /proc/$!/comm; do :; done; echo $! >daemon; exit 3`

// oneIsLeft wants one live process of the job, and ends it. (During exec a process has no environment for a moment.)
func (s *stage) oneIsLeft() {
	s.Helper()
	var left []int
	helper.Eventually(s, "one process is left", func() bool {
		left = helper.With("ADLOCK_DIR=" + s.locks)
		return len(left) == 1
	})
	end(s.T, left[0])
}

func TestWholeJobHoldsTheAtomUntilTheLastDaemonIsGone(t *testing.T) {
	s := newStage(t)
	p := s.command(job("--whole-job", "sh", "-c", leaves)...).Start(s)
	daemon := childOf(t, p.PID, "sleep") // the runner is the new parent
	helper.EndsWith(s, daemon)
	s.want(75, job("true")...)
	wantWords(t, s.want(0, "status").Out, "running", itoa(p.PID))
	if kinds := s.kinds("a"); strings.Contains(kinds, "release") {
		t.Errorf("the runlog has %s", kinds)
	}
	must(t, unix.Kill(daemon, unix.SIGTERM))
	if status := p.Wait(t); status != 3 || p.Output() != "" || s.held("a") {
		t.Errorf("status %d, held: %v, %s", status, s.held("a"), p.Output())
	}
	if age := time.Since(s.modified(s.lastOf("a"))); age > time.Minute {
		t.Errorf("stamped %v ago", age)
	}
}

// Under qemu, a program of another architecture cannot become a subreaper.
func TestOnlyTheOptionWholeJobIsRefusedWithoutASubreaper(t *testing.T) {
	s := newStage(t)
	need.Tools(t, "strace")
	without := func(words ...string) helper.Result {
		c := s.command(words...)
		c.Args = append([]string{"strace", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "-e", "trace=prctl", "-e", "inject=prctl:error=EINVAL"}, c.Args...)
		return c.Run(t)
	}
	without(job("sh", "-c", "echo ran; exit 3")...).Is(t, 3, "ran\n", "")
	check.Equal(t, "the atom is held still", s.held("a"), false)
	without(job("--whole-job", "true")...).Refused(t, 69, "--whole-job: ")
	r := without(job("--enforce", "--expire-after", "1s", "sh", "-c", "(sleep 9m >/dev/null 2>&1 & echo $!); sleep 9m")...)
	pid, err := strconv.Atoi(strings.TrimSpace(r.Out))
	if r.Status != 124 || err != nil || helper.Alive(pid) {
		t.Errorf("%+v, %v, and an orphan of the job lives on", r, err)
	}
}
