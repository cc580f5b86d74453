package cli

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/test/support/check"
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
	must(s, errors.Join(err, cmd.Start()))
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
	must(s, err)
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

func TestOnlyOneOfTwoSimultaneousStartsRuns(t *testing.T) {
	s := newStage(t)
	times := need.Sample(200)
	for i := range times {
		if first, second := s.race("echo ran >>ran; cat"); first != 75 || second != 0 {
			t.Fatalf("start %d: statuses %d and %d, want 75 and 0", i, first, second)
		}
	}
	check.Equal(t, "starts", strings.Count(s.read(s.in("ran")), "ran"), times)
}

// replaces runs the helper program, which ends the job of a process and says only that.
func (s *stage) replaces(pid int, words ...string) {
	s.Helper()
	s.refused(0, ": ended process "+itoa(pid)+" by force: it had run for ", append([]string{patient}, words...)...)
}
