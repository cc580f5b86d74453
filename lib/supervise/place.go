package supervise

import (
	"golang.org/x/sys/unix"

	"adlock/lib/sysfile"
)

// place is the position of this process among sessions and process groups.
type place struct {
	terminal bool // there is a controlling terminal
	leads    bool // this process leads its process group
}

// leadGroup makes this process the leader of a group of its own, unless it has a terminal. On a
// terminal it stays in its group, which the shell has made for job control: a new group would be
// stopped when the job reads the terminal.
func leadGroup() place {
	terminal := hasTerminal()
	if !terminal {
		// EPERM: a session leader already leads its group.
		_ = unix.Setpgid(0, 0)
	}
	return place{terminal: terminal, leads: unix.Getpgrp() == unix.Getpid()}
}

// inForeground reports whether signals from the keyboard go to this process's group.
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
