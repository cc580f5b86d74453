package process

import (
	"os/exec"
	"syscall"
	"testing"

	"adlock/test/support/must"
)

// A group of which /proc shows only a zombie may also have a member that /proc hides: kill(2)
// succeeds with and without such a member.
func TestAZombieProvesNothingOfAGroupThatMayHideAnother(t *testing.T) {
	command := exec.Command("sleep", "60")
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must.Do(t, command.Start())
	defer func() { command.Process.Kill(); command.Wait() }()
	pid := command.Process.Pid
	zombie := Entry{PID: pid, PGID: pid, Exited: true}

	defer func(hides func() bool) { hidesProcesses = hides }(hidesProcesses)
	for _, hides := range []bool{false, true} {
		hidesProcesses = func() bool { return hides }
		if got := (band{Key: Key{PID: pid}}).lives([]Entry{zombie}); got != hides {
			t.Errorf("/proc may hide a process: %v; the group lives: %v", hides, got)
		}
	}
}
