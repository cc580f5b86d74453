package killer

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/lib/process"
	"adlock/test/support/actor"
	"adlock/test/support/helper"
	"adlock/test/support/must"
)

func TestMain(m *testing.M) { actor.Main(m) }

func idOf(a *actor.Actor) process.Identity {
	a.T.Helper()
	return must.Get(process.Of(a.PID()))(a.T)
}

func entryOf(a *actor.Actor) process.Entry {
	a.T.Helper()
	return must.Get(process.Find(a.PID()))(a.T)
}

func gone(pid int) bool { return !process.PIDLives(pid) }

// recorder collects what a Killer observed, as "PID SIGNAL".
type recorder struct{ sent []string }

func (r *recorder) killer(pause time.Duration) Killer {
	return Killer{Pause: pause, Observe: func(s Signalled) {
		r.sent = append(r.sent, fmt.Sprint(s.PID, " ", s.Signal))
	}}
}

// to returns the signals sent to pid, in order.
func (r *recorder) to(pid int) string {
	var list []string
	for _, line := range r.sent {
		if sig, ok := strings.CutPrefix(line, strconv.Itoa(pid)+" "); ok {
			list = append(list, sig)
		}
	}
	return strings.Join(list, " ")
}

// mustEnd fails the test unless the job is ended. On a busy machine a process may not come to die
// within the second that the killer waits after KILL, so mustEnd waits too.
func mustEnd(t *testing.T, k Killer, job process.Job) {
	t.Helper()
	observe := k.Observe
	k.Observe = func(s Signalled) {
		if observe != nil {
			observe(s)
		}
		if s.Signal == "KILL" && s.PID > 0 {
			actor.Eventually(t, "it is dead", func() bool { return !helper.Alive(s.PID) })
		}
	}
	mustEndAtOnce(t, k, job)
}

// mustEndAtOnce is mustEnd without a wait.
func mustEndAtOnce(t *testing.T, k Killer, job process.Job) {
	t.Helper()
	must.Do(t, k.End(job))
}

func mustStick(t *testing.T, err, want error) {
	t.Helper()
	var stuck *process.StuckError
	if !errors.Is(err, want) || !errors.As(err, &stuck) {
		t.Fatalf("got %v, want stuck with: %v", err, want)
	}
}

// hunted makes a tree whose members are these processes.
func hunted(t *testing.T, members ...*actor.Actor) *tree {
	t.Helper()
	h := newTree(-1)
	t.Cleanup(h.close)
	for _, a := range members {
		h.adopt(entryOf(a))
	}
	if len(h.order) != len(members) {
		t.Fatalf("%d members of %d", len(h.order), len(members))
	}
	return h
}

// deaf starts a process that ignores HUP, INT and TERM.
func deaf(t *testing.T, attr syscall.SysProcAttr) *actor.Actor {
	t.Helper()
	ready := actor.File(t, "ready")
	a := actor.Shell(t, attr, `trap "" HUP INT TERM; >"$1"; exec sleep 100`, ready)
	actor.Eventually(t, "it is deaf", func() bool { return actor.Exists(ready) && entryOf(a).Command == "sleep" })
	return a
}

// scans counts how often the process table is read from now on.
func scans(t *testing.T) *int {
	t.Helper()
	n, read := new(int), readTable
	actor.Set(t, &readTable, func(see func(*process.Entry) bool) ([]process.Entry, error) { *n++; return read(see) })
	return n
}
