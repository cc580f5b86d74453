package supervise

import (
	"golang.org/x/sys/unix"

	"adlock/lib/process"
	"adlock/lib/sysfile"
)

type place struct {
	terminal bool // there is a controlling terminal
	leads    bool // this process leads its process group
}

// findPlace leaves this process in the process group of its caller, so that a signal to that group, as from
// timeout(1), reaches the job too. If the job cannot be found by its mark, or orphans cannot be adopted, this
// process makes a group of its own. It makes none on a terminal: a job that reads there would be stopped.
func findPlace() place {
	terminal := hasTerminal()
	if !terminal && (!process.HasMarks || !CanKeepWhole()) {
		// EPERM: a session leader already leads its group.
		_ = unix.Setpgid(0, 0)
	}
	return place{terminal: terminal, leads: unix.Getpgrp() == unix.Getpid()}
}

func (p place) inForeground() bool {
	if !p.terminal {
		return false
	}
	tty, err := openTerminal()
	if err != nil {
		return false
	}
	defer unix.Close(tty)
	group, err := unix.IoctlGetInt(tty, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

func hasTerminal() bool {
	tty, err := openTerminal()
	if err != nil {
		return false
	}
	unix.Close(tty)
	return true
}

func openTerminal() (int, error) {
	return sysfile.Open("/dev/tty", unix.O_RDONLY)
}
