package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/test/support/helper"
	"adlock/test/support/need"
)

const slot = "/lock.job." + host + ".slot-1"

// stoppedAt starts a stopped process that holds the lock's guard.
func (s *stage) stoppedAt(lock string) (holder *helper.Process) {
	s.Helper()
	need.Tools(s, "flock")
	holder = helper.Command{Dir: s.dir, Args: []string{"flock", "-o", lock, "-c", "kill -STOP $PPID; echo >at-slot; exec sleep 600"}}.Start(s)
	helper.Eventually(s, "its guard is held", func() bool { return exists(s.in("at-slot")) })
	return holder
}

// The process at the slot does not end the job, so its supervisor does, as soon as it can record the members.
func TestASupervisorEndsItsJobOnceItsSlotsGuardIsFree(t *testing.T) {
	s := newStage(t)
	var gated helper.Atom
	over := gated.Gated(t)
	c := s.command(job("--slots", "1", "--enforce", "--expire-after", "1h", "--", "sleep", "600")...)
	c.Args[0], c.Env = gated.Bin, append(c.Env, gated.More...)
	p := c.Start(s)
	helper.Eventually(s, "the job runs", func() bool { return helper.Settled(s.locks + slot) })
	holder := s.stoppedAt(s.locks + slot)
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
