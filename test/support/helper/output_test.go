package helper

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/test/support/must"
)

// slow is a writer that is late, as on a busy machine.
type slow struct{ strings.Builder }

func (s *slow) Write(p []byte) (int, error) {
	time.Sleep(50 * time.Millisecond)
	return s.Builder.Write(p)
}

func TestAllOutputOfACommandIsReadHoweverLate(t *testing.T) {
	t.Parallel()
	for script, alone := range map[string]bool{"echo one; sleep 0.01; echo two": true, "sleep 60 & echo one; sleep 0.01; echo two": false} {
		var text slow
		o := must.Get(NewOutput(&text))(t)
		command := exec.Command("sh", "-c", script)
		command.Stdout, command.SysProcAttr = o.Out, &syscall.SysProcAttr{Setpgid: true}
		err := command.Start()
		o.Started()
		if err != nil || command.Wait() != nil {
			t.Fatal(err)
		}
		if got := o.Finish(time.Millisecond); text.String() != "one\ntwo\n" || got != alone {
			t.Errorf("%s: alone %v, %q", script, got, text.String())
		}
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) // the sleep, if there is one
	}
}
