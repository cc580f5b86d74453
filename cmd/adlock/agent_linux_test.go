package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/process"
	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	_ "adlock/test/support/need" // the same environment, however the suite is started
)

// This program is its own agent, with an answerer that repeats the question.
func TestMain(m *testing.M) {
	if os.Getenv("AGENT_TEST_IDLE") != "" {
		idleTime, unasked, parting = time.Second, 3*time.Second, 5*time.Second
	}
	agentMain(func(owner process.Identity, args []string) (agentAnswer, error) {
		switch args[0] {
		case "error":
			fault.Warn("agent", "is not heard")
			return agentAnswer{}, errors.New("it went wrong")
		case "say":
			fault.Warn("object", "reason")
			fault.Warn("another", "one")
		case "environment":
			return agentAnswer{Words: strings.Join(os.Environ(), " ")}, nil
		case "long":
			return agentAnswer{Words: strings.Repeat("x", 3*longestLine)}, nil
		}
		return agentAnswer{Status: len(args), Words: strconv.Itoa(owner.PID) + " " + strings.Join(args, "|")}, nil
	})
	os.Exit(m.Run())
}

type asker struct {
	t         *testing.T
	id        process.Identity
	sign      string // the agent's descriptor of /proc/OWNER while it serves
	owner     string // the agent's second descriptor of /proc/OWNER, which it keeps
	questions *os.File
	answers   *bufio.Reader
	unread    *os.File // the pipe that answers reads from
}

func of(t *testing.T, pid int) process.Identity {
	t.Helper()
	return must.Get(process.Of(pid))(t)
}

func started(t *testing.T, owner process.Identity) *asker {
	t.Helper()
	greeting, err := startAgent(owner)
	var pid int
	var paths []string
	for _, assignment := range strings.Fields(greeting) {
		name, path, _ := strings.Cut(assignment, "=")
		if n, _ := fmt.Sscanf(path, "/proc/%d/fd/", &pid); n == 1 && strings.HasPrefix(name, "_adlock_") {
			paths = append(paths, path)
		}
	}
	if err != nil || len(paths) != 4 {
		t.Fatalf("%q, %v", greeting, err)
	}
	a := &asker{t: t, id: of(t, pid), sign: paths[0], owner: paths[1]}
	t.Cleanup(func() { // once the agent has left, its pid may be another process's
		if a.id.Life() == process.Alive {
			_ = unix.Kill(a.id.PID, unix.SIGKILL)
		}
	})
	a.questions = must.Get(os.OpenFile(paths[2], os.O_WRONLY, 0))(t)
	a.unread = must.Get(os.OpenFile(paths[3], os.O_RDONLY, 0))(t)
	a.answers = bufio.NewReader(a.unread)
	t.Cleanup(func() { a.questions.Close(); a.unread.Close() })
	return a
}

// ours is an agent of this process.
func ours(t *testing.T) *asker {
	t.Helper()
	return started(t, of(t, os.Getpid()))
}

var me = strconv.Itoa(os.Getpid())

func (a *asker) send(text string) {
	a.t.Helper()
	must.Get(a.questions.WriteString(text))(a.t)
}

func (a *asker) ask(number int, words ...string) {
	a.t.Helper()
	a.send("\t" + strconv.Itoa(number) + "\t" + strings.Join(words, "\t") + "\t\n")
}

func (a *asker) want(want string) {
	a.t.Helper()
	answered := make(chan string, 1)
	go func() { line, _ := a.answers.ReadString('\n'); answered <- line }()
	select {
	case got := <-answered:
		if got != want {
			a.t.Errorf("the answer is %q, want %q", got, want)
		}
	case <-time.After(helper.Patience):
		a.t.Fatalf("no answer, want %q", want)
	}
}

func (a *asker) leaves() {
	a.t.Helper()
	helper.Eventually(a.t, "it is gone", func() bool { return a.id.Life() == process.Dead })
}

func TestAnAgentAnswersEachQuestionInOrder(t *testing.T) {
	a := ours(t)
	a.ask(3, "take", "a b", "")
	a.want("3 3 " + me + " take|a b|\n")
	a.ask(7, "next")
	a.ask(8, "and", "one")
	a.want("7 1 " + me + " next\n")
	a.want("8 2 " + me + " and|one\n")
}

func TestAnAgentLeavesACutOrLongQuestionToAHelper(t *testing.T) {
	a := ours(t)
	for i, words := range []string{"cut short", "", strings.Repeat("x", longestLine), strings.Repeat("x", longestLine) + "\t", strings.Repeat("x\t", longestLine), strings.Repeat("x\t", 30*longestLine)} {
		a.send("\t" + strconv.Itoa(i+1) + "\t" + words + "\n")
		a.want(strconv.Itoa(i+1) + " helper\n")
	}
	a.ask(101, "x")
	a.want("101 1 " + me + " x\n")
}

func TestALineThatIsNoQuestionEndsTheAgent(t *testing.T) {
	for _, text := range []string{
		"\n", ".\n", ".\t2\tx\t\n", "1\tx\t\n", "\tx\ty\t\n", "\t\n", "\t2\n",
		"\t1\tagain\t\n", "\t0\tearlier\t\n", strings.Repeat("x", 3*longestLine) + "\n",
	} {
		a := ours(t)
		a.ask(1, "error")
		a.want("1 helper\n")
		a.send(text)
		a.want("")
		a.leaves()
	}
}

func TestMessagesComeWithTheAnswerUnlessAHelperRuns(t *testing.T) {
	a := ours(t)
	a.ask(1, "error")
	a.want("1 helper\n")
	a.ask(2, "say")
	a.want("2 1 " + me + " say\tadlock: object: reason\tadlock: another: one\n")
	a.ask(3, "x")
	a.want("3 1 " + me + " x\n")
}

func TestALongAnswerIsCutToOneWrite(t *testing.T) {
	a := ours(t)
	a.ask(1, "long")
	a.want("1 0 " + strings.Repeat("x", longestLine-5) + "\n")
}

func TestAnAgentInheritsNoSettings(t *testing.T) {
	t.Setenv("ADLOCK_IF_ELAPSED", "1h")
	t.Setenv("KEPT", "yes")
	a := ours(t)
	a.ask(1, "environment")
	line, err := a.answers.ReadString('\n')
	if err != nil || strings.Contains(line, "ADLOCK_") || !strings.Contains(line, "KEPT=yes") {
		t.Errorf("%q, %v", line, err)
	}
}

func TestAnAgentIsOutsideItsOwnersJob(t *testing.T) {
	read, theirs, err := os.Pipe()
	must.Do(t, err)
	must.Get(unix.FcntlInt(theirs.Fd(), unix.F_SETFD, 0))(t) // like descriptors that a shell has opened
	a := ours(t)
	theirs.Close()
	if n, _ := read.Read(make([]byte, 1)); n != 0 {
		t.Error("it holds what it inherited")
	}
	if a.id.SID != a.id.PID || a.id.PGID != a.id.PID {
		t.Errorf("session %d, group %d", a.id.SID, a.id.PGID)
	}
	held, err1 := os.Stat(a.owner)
	own, err2 := os.Stat("/proc/self")
	if err := errors.Join(err1, err2); err != nil || !os.SameFile(held, own) {
		t.Errorf("it does not say whose agent it is (%v)", err)
	}
}

func TestAnAgentThatCannotAnswerExits(t *testing.T) {
	a := ours(t)
	a.unread.Close()
	a.ask(1, "x")
	a.leaves()
}

func TestAnAgentExitsWithItsOwner(t *testing.T) {
	sleep := exec.Command("sleep", "600")
	must.Do(t, sleep.Start())
	a := started(t, of(t, sleep.Process.Pid))
	must.Do(t, sleep.Process.Kill())
	_ = sleep.Wait()
	a.want("")
	a.leaves()
}

func TestAnIdleAgentExits(t *testing.T) {
	t.Setenv("AGENT_TEST_IDLE", "yes")
	a := ours(t)
	for number := range 25 { // longer than idle, in all
		a.ask(number+1, "x")
		a.want(strconv.Itoa(number+1) + " 1 " + me + " x\n")
		time.Sleep(50 * time.Millisecond)
	}
	a.leaves()
}

func TestAnAgentThatIsNeverAskedExits(t *testing.T) {
	t.Setenv("AGENT_TEST_IDLE", "yes")
	ours(t).leaves()
}

func TestALeavingAgentAnswersALateQuestion(t *testing.T) {
	t.Setenv("AGENT_TEST_IDLE", "yes")
	a := ours(t)
	serves := func(path string) bool {
		held, err1 := os.Stat(path)
		own, err2 := os.Stat("/proc/self")
		return err1 == nil && err2 == nil && os.SameFile(held, own)
	}
	check.Equal(t, "it has a sign", serves(a.sign), true)
	helper.Eventually(t, "its sign is down", func() bool { return !serves(a.sign) })
	if !serves(a.owner) { // it was gone before this test came to run
		TestALeavingAgentAnswersALateQuestion(t)
		return
	}
	a.ask(1, "x")
	a.want("1 1 " + me + " x\n")
}

// At first the agent waits for a question in a system call that the runtime does not know of. If
// that wait did not end, it would wake the runtime's watchdog a hundred times a second.
func TestAnAgentThatWaitsIsNotWokenByTimers(t *testing.T) {
	a := ours(t)
	a.ask(1, "x")
	a.want("1 1 " + me + " x\n")
	for end := time.Now().Add(helper.Patience); time.Now().Before(end); {
		before := helper.Switches(t, a.id.PID)
		time.Sleep(300 * time.Millisecond)
		if helper.Switches(t, a.id.PID) == before {
			return
		}
	}
	t.Error("in no 300ms of 20s it was left asleep")
}

func TestNoAgentStartsForAnOwnerWithAnotherStartTime(t *testing.T) {
	stranger := of(t, os.Getpid())
	stranger.Start++
	if greeting, err := startAgent(stranger); err == nil {
		t.Errorf("it serves: %q", greeting)
	}
}
