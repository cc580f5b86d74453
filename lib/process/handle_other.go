//go:build !linux

package process

import (
	"time"

	"golang.org/x/sys/unix"
)

// openPidfd returns noPidfd: on these systems handles compare the start time before each signal.
func openPidfd(int) int { return noPidfd }

func inodeOfPidfd(int) uint64 { return 0 }

func inodeOf(int) (uint64, error) { return 0, nil }

// hidden finds nothing: these systems do not show a hidden process by its pid either.
func hidden(int) (Entry, bool) { return Entry{}, false }

func hidesProcesses() bool { return false }

func signalPidfd(int, unix.Signal) error { return unix.EBADF }

func pidfdExited(int) bool { return false }

// AwaitDeath sleeps for d, 5 ms at most: kqueue's NOTE_EXIT would wake it sooner, but could not be tested.
func AwaitDeath(_ []Handle, d time.Duration) { time.Sleep(min(d, 5*time.Millisecond)) }

// Children returns nil: here only the process table shows children.
func Children(int) []int { return nil }

// PIDLives reports whether any process in this pid namespace has that pid and is alive. PIDLives is false only
// for a pid below 1 and for a confirmed death: no such process, or a zombie.
func PIDLives(pid int) bool {
	if pid <= 0 {
		return false
	}
	e, err := look(pid)
	if err != nil {
		return unix.Kill(pid, 0) != unix.ESRCH
	}
	return !e.Exited
}

func User(pid int) (int, error) {
	_, uid, err := lookUser(pid)
	return uid, err
}

func look(pid int) (Entry, error) {
	e, _, err := lookUser(pid)
	return e, err
}

func parent(pid int) (int, error) {
	e, err := look(pid)
	return e.Parent, err
}
