package process

import (
	"testing"

	"adlock/test/support/actor"
	"adlock/test/support/must"
)

func TestMain(m *testing.M) { actor.Main(m) }

func idOf(a *actor.Actor) Identity {
	a.T.Helper()
	return must.Get(Of(a.PID()))(a.T)
}

func entryOf(a *actor.Actor) Entry {
	a.T.Helper()
	return must.Get(look(a.PID()))(a.T)
}

func gone(pid int) bool { return !PIDLives(pid) }

// scans counts how often the process table is read from now on.
func scans(t *testing.T) *int {
	t.Helper()
	n, hides := new(int), hidesProcesses
	actor.Set(t, &hidesProcesses, func() bool { *n++; return hides() })
	return n
}
