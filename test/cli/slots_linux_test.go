package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/test/support/helper"
	"adlock/test/support/need"
)

const slot = "/lock.job." + host + ".slot-1"

// atSlot starts a stopped process that holds the slot's guard.
func (s *stage) atSlot() (holder *helper.Process) {
	s.Helper()
	return s.at(s.locks + slot)
}

// at starts a stopped process that holds the lock's guard.
func (s *stage) at(lock string) (holder *helper.Process) {
	s.Helper()
	need.Tools(s, "flock")
	helper.Eventually(s, "the lock is there", func() bool { return exists(lock) })
	holder = helper.Command{Dir: s.dir, Args: []string{"flock", "-o", lock, "-c", "kill -STOP $PPID; echo >at-slot; exec sleep 600"}}.Start(s)
	helper.Eventually(s, "its guard is held", func() bool { return os.Remove(s.in("at-slot")) == nil })
	return holder
}

// settled waits until a supervisor has released the lock's guard.
func (s *stage) settled(lock string) {
	s.Helper()
	helper.Eventually(s, "the job runs", func() bool { return helper.Settled(s.locks + lock) })
}

func TestAReleaseReportsAGuardedSlotAndFreesTheAtom(t *testing.T) {
	s := newStage(t)
	want := s.locks + slot + ": another process is changing the lock"
	p := s.command(job("--slots", "1", "--", "sh", "-c", "until [ -e go ]; do sleep 0.01; done; exit 3")...).Start(s)
	s.settled(slot)
	holder := s.atSlot()
	s.in("go", "")
	if status := p.Wait(t); status != 3 || p.Output() != "adlock: "+want+"\n" || s.held("a") {
		t.Errorf("status %d, held: %v, %s", status, s.held("a"), p.Output())
	}
	end(t, holder.PID)
	s.want(0, job("--slots", "1", "true")...)
	if exists(s.locks + slot) {
		t.Error("the slot is left")
	}

	s.want(0, s.take("b", "--slots", "1")...)
	holder = s.atSlot()
	s.refused(75, want, "release", s.lockOf("b"))
	end(t, holder.PID)
	s.want(0, job("--slots", "1", "true")...) // though this process, which took it, is alive
}

// The process at the slot does not end the job, so its supervisor does, as soon as it can record
// the members.
func TestASupervisorEndsItsJobOnceItsSlotIsFree(t *testing.T) {
	s := newStage(t)
	var gated helper.Atom
	over := gated.Gated(t)
	c := s.command(job("--slots", "1", "--enforce", "--expire-after", "1h", "--", "sleep", "600")...)
	c.Args[0], c.Env = gated.Bin, append(c.Env, gated.More...)
	p := c.Start(s)
	s.settled(slot)
	holder := s.atSlot()
	over()
	helper.Eventually(t, "it tries to record the members", func() bool { return hasOpen(p.PID, filepath.Base(slot)) || p.Ended() })
	if p.Ended() {
		t.Fatalf("it ended, and the members were not recorded: %s", p.Output())
	}
	s.want(75, job("--slots", "1", "--expire-after", "0", "true")...)
	must(t, unix.Kill(holder.PID, unix.SIGKILL))
	if status := p.Wait(t); status != 124 || !strings.Contains(p.Output(), "ended by force") || s.held("a") || exists(s.locks+slot) {
		t.Errorf("status %d, held: %v, %s", status, s.held("a"), p.Output())
	}
}
