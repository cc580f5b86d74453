//go:build !linux

package process

import (
	"time"

	"golang.org/x/sys/unix"
)

// Without pidfds, handles compare the start time before each signal.

func openPidfd(int) int { return -1 }

func inodeOfPidfd(int) uint64 { return 0 }

func inodeOf(int) uint64 { return 0 }

// hidden: what these systems hide cannot be looked at by number either.
func hidden(int) (entry, bool) { return entry{}, false }

func hidesProcesses() bool { return false }

func signalPidfd(int, unix.Signal) error { return unix.EBADF }

func pidfdDead(int) bool { return false }

// awaitDeath only waits: kqueue's NOTE_EXIT would wake sooner, but could not
// be tried out.
func awaitDeath(_ []handle, d time.Duration) { time.Sleep(min(d, 5*time.Millisecond)) }

// children are found by table alone.
func children(int) []int { return nil }

// PIDLives tells whether a process with that pid is alive here, whichever it
// is: for locks that recorded nothing else. It is false only for a confirmed
// death: no such process, or a zombie.
func PIDLives(pid int) bool {
	if pid <= 0 {
		return false
	}
	e, err := look(pid)
	if err != nil {
		return unix.Kill(pid, 0) != unix.ESRCH
	}
	return !e.dead
}

func user(pid int) (int, error) {
	_, uid, err := lookUser(pid)
	return uid, err
}

func look(pid int) (entry, error) {
	e, _, err := lookUser(pid)
	return e, err
}

func parent(pid int) (int, error) {
	e, err := look(pid)
	return e.ppid, err
}
