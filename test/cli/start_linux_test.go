package cli

import (
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/test/support/helper"
	"adlock/test/support/need"
)

func itoa(n int) string { return strconv.Itoa(n) }

// starter is one of two processes that start at the same instant: a shell that waits until the
// other end of descriptor 3 is closed, and becomes the program.
type starter struct {
	cmd   *exec.Cmd
	input io.Closer // the job ends when it is closed
	ended chan int
}

const onTheWord = `read -r word <&3; exec 3<&-; exec "$@"`

func (s *stage) starter(word *os.File, job string) *starter {
	s.Helper()
	c := s.command("run", "--name", "same", "--", "sh", "-c", job)
	cmd := exec.Command("sh", append([]string{"-c", onTheWord, "sh"}, c.Args...)...)
	cmd.Dir, cmd.Env, cmd.ExtraFiles = c.Dir, append(need.Clean(), c.Env...), []*os.File{word}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	input, err := cmd.StdinPipe()
	if err != nil {
		s.Fatal(err)
	}
	must(s, cmd.Start())
	st := &starter{cmd, input, make(chan int, 1)}
	go func() {
		_ = cmd.Wait() // ProcessState has the status
		st.ended <- cmd.ProcessState.ExitCode()
	}()
	return st
}

// race starts two runs at once, and returns their statuses in the order in which they end.
func (s *stage) race(job string) (first, second int) {
	s.Helper()
	word, say, err := os.Pipe()
	if err != nil {
		s.Fatal(err)
	}
	a, b := s.starter(word, job), s.starter(word, job)
	word.Close()
	say.Close()
	patience := time.After(helper.Patience)
	select {
	case first = <-a.ended:
		b.input.Close()
	case first = <-b.ended:
		a, b = b, a
		b.input.Close()
	case <-patience:
		s.Error("both run")
		a.input.Close()
		b.input.Close()
		first = <-a.ended
	}
	return first, <-b.ended
}

func TestOfTwoStartsAtTheSameInstantOneRunsAndTheOtherIsDenied(t *testing.T) {
	s := newStage(t)
	times := need.Sample(200)
	for i := range times {
		if first, second := s.race("echo ran >>ran; cat"); first != 75 || second != 0 {
			t.Fatalf("start %d: statuses %d and %d, want 75 and 0", i, first, second)
		}
	}
	if ran := strings.Count(s.read(s.in("ran")), "ran"); ran != times {
		t.Errorf("ran %d times, want %d", ran, times)
	}
}

func TestAJobOutlivesItsRunnerAndHoldsTheAtomUntilItIsGone(t *testing.T) {
	s := newStage(t)
	runner := s.hold("a")
	job := childOf(t, runner.PID, "sleep")
	runner.Kill(t)
	s.want(75, "run", "--program", "job", "--name", "a", "--", "true")
	if !helper.Alive(job) {
		t.Fatal("the job died with its runner, or of the newcomer")
	}
	must(t, syscall.Kill(job, syscall.SIGKILL))
	helper.Eventually(t, "the job is gone", func() bool { return !helper.Alive(job) })
	// No run has completed: IfElapsed does not deny.
	s.want(0, "run", "--program", "job", "--name", "a", "--if-elapsed", "1h", "--", "true")
	if got := s.kinds("a"); got != "acquire deny reclaim acquire release" {
		t.Errorf("the record tells %q", got)
	}
}

func TestAKilledJobIsReleasedAndItsSignalPassedThrough(t *testing.T) {
	s := newStage(t)
	runner := s.hold("a")
	must(t, syscall.Kill(childOf(t, runner.PID, "sleep"), syscall.SIGKILL))
	if status := runner.Wait(t); status != 128+9 {
		t.Errorf("status %d, want 137", status)
	}
	if s.held("a") {
		t.Error("the lock is still there")
	}
	s.want(75, "run", "--program", "job", "--name", "a", "--if-elapsed", "1h", "--", "true")
	s.want(0, "run", "--program", "job", "--name", "a", "--", "true")
}

// sourcing is a script that takes job.run.a and then waits.
const sourcing = `#!/bin/sh
. "$ADLOCK_SH" || exit 69
ADLOCK_PROGRAM=job adlock_get run a 0 || exit
: >held
`

// source starts a script that takes a; the shell that leads its process group runs lead.
func (s *stage) source(text string, lead string) *helper.Process {
	s.Helper()
	c := s.command("ADLOCK_SH="+helper.Root()+"/sh/adlock.sh", "ADLOCK_BIN="+helper.Binary(s))
	s.in("script", sourcing+text)
	c.Args = []string{"sh", "-c", lead, "sh", "./script"}
	p := c.Start(s)
	helper.Eventually(s, "the script holds a", func() bool { return exists(s.in("held")) || p.Ended() })
	if p.Ended() {
		s.Fatal("the script did not take a: " + p.Output())
	}
	return p
}

// ownerOf returns the pid on the first line of the lock.
func (s *stage) ownerOf(name string) int {
	s.Helper()
	first, _, _ := strings.Cut(s.read(s.lockOf(name)), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		s.Fatal(err)
	}
	return pid
}

func TestAKilledScriptHoldsTheAtomUntilItsChildIsGone(t *testing.T) {
	s := newStage(t)
	s.source("sleep 600\n", `"$1" & wait; sleep 600`)
	owner := s.ownerOf("a")
	child := childOf(t, owner, "sleep")
	must(t, syscall.Kill(owner, syscall.SIGKILL))
	helper.Eventually(t, "the script is gone", func() bool { return !helper.Alive(owner) })
	s.want(75, "run", "--program", "job", "--name", "a", "--", "true")
	must(t, syscall.Kill(child, syscall.SIGKILL))
	helper.Eventually(t, "the child is gone", func() bool { return !helper.Alive(child) })
	s.want(0, "run", "--program", "job", "--name", "a", "--", "true")
}

func TestAScriptThatLeadsItsGroupHoldsTheAtomUntilItsChildIsGone(t *testing.T) {
	s := newStage(t)
	script := s.source("sleep 600\n", `exec "$1"`)
	child := childOf(t, script.PID, "sleep")
	script.Kill(t)
	s.want(75, "run", "--program", "job", "--name", "a", "--", "true")
	must(t, syscall.Kill(child, syscall.SIGKILL))
	helper.Eventually(t, "the child is gone", func() bool { return !helper.Alive(child) })
	s.want(0, "run", "--program", "job", "--name", "a", "--", "true")
}

// replaces runs the helper program, which ends a job and prints only that.
func (s *stage) replaces(pid int, words ...string) {
	s.Helper()
	if r := s.adlock(append([]string{patient}, words...)...); r.Status != 0 || !oneLine(r.Err) || !strings.Contains(r.Err, ": ended process "+itoa(pid)+" by force: it had run for ") {
		s.Errorf("adlock %q: status %d, want 0 and a line about process %d\n%s", words, r.Status, pid, r.Err)
	}
}

// saysByWhom expects the ended run to name the process and the reason, and no more.
func saysByWhom(t *testing.T, ended *helper.Process) {
	t.Helper()
	if said := ended.Output(); !oneLine(said) || !strings.HasPrefix(said, "adlock: run a: ended by force by process ") || !strings.Contains(said, ": it had run for ") {
		t.Errorf("the old one said, and cron would have mailed: %q", said)
	}
}

func TestAnExpiredRunIsReplacedAndBothSayWhy(t *testing.T) {
	s := newStage(t)
	old := s.hold("a")
	job := childOf(t, old.PID, "sleep")
	s.replaces(old.PID, "run", "--program", "job", "--name", "a", "--expire-after", "0", "--", "true")
	old.Wait(t)
	if helper.Alive(job) {
		t.Error("the old job lives")
	}
	saysByWhom(t, old)
}

func TestAnExpiredScriptThatDiesOfTheFirstSignalSaysNothing(t *testing.T) {
	s := newStage(t)
	old := s.source("trap adlock_release EXIT; trap 'exit 143' TERM\nsleep 600\n", `exec "$1"`)
	childOf(t, old.PID, "sleep")
	s.replaces(old.PID, "run", "--program", "job", "--name", "a", "--expire-after", "0", "--", "true")
	old.Wait(t)
	if old.Output() != "" {
		t.Errorf("the old one said, and cron would have mailed: %s", old.Output())
	}
}
