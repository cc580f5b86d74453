package sysfile

import (
	"errors"
	"io"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/test/support/helper"
	"adlock/test/support/must"
	_ "adlock/test/support/need" // the same environment, however the suite is started
)

// child is a shell that a test starts and reaps with Wait or Reap.
type child struct {
	*exec.Cmd
	input io.WriteCloser
}

// start starts a shell with a script; arguments follow as $1 and so on.
func start(t *testing.T, script string, args ...string) child {
	t.Helper()
	c := exec.Command("/bin/sh", append([]string{"-c", script, "sh"}, args...)...)
	input := must.Get(c.StdinPipe())(t)
	must.Do(t, c.Start())
	t.Cleanup(func() { input.Close() })
	return child{c, input}
}

// free ends the standard input of the child.
func (c child) free() { c.input.Close() }

func TestWaitReapsAChildOnce(t *testing.T) {
	c := start(t, "exit 3")
	status, err := Wait(c.Process.Pid)
	if err != nil || !status.Exited() || status.ExitStatus() != 3 {
		t.Errorf("status %v: %v", status, err)
	}
	if _, err := Wait(c.Process.Pid); !errors.Is(err, unix.ECHILD) {
		t.Errorf("again: %v, want ECHILD", err)
	}
}

func TestReapReturnsAtOnceWhileTheChildLives(t *testing.T) {
	c := start(t, "read word; exit 5")
	if pid, _ := Reap(); pid != 0 {
		t.Errorf("reaped %d, which lives", pid)
	}
	c.free()
	helper.Eventually(t, "the child is reaped", func() bool {
		pid, status := Reap()
		if pid != 0 && (pid != c.Process.Pid || status.ExitStatus() != 5) {
			t.Errorf("reaped %d with %v, want %d with 5", pid, status, c.Process.Pid)
		}
		return pid != 0
	})
	if pid, _ := Reap(); pid != 0 {
		t.Errorf("reaped %d, and there is no child", pid)
	}
}

func TestRetryRepeatsAnInterruptedCall(t *testing.T) {
	for _, want := range []error{nil, unix.EIO} {
		calls := 0
		call := func() (int, error) {
			if calls++; calls%3 != 0 {
				return -1, unix.EINTR
			}
			return calls, want
		}
		if err := Retry(func() error { _, err := call(); return err }); err != want || calls != 3 {
			t.Errorf("%v after %d calls", err, calls)
		}
		if n, err := RetryN(call); err != want || n != 6 {
			t.Errorf("%d, %v after %d calls", n, err, calls)
		}
	}
}
