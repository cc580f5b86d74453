package cli

import (
	"path/filepath"
	"slices"
	"strconv"
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
	p.Lives(t)
	s.want(75, job("--slots", "1", "--expire-after", "0", "true")...)
	must(t, unix.Kill(holder.PID, unix.SIGKILL))
	if status := p.Wait(t); status != 124 || !strings.Contains(p.Output(), "ended by force") || s.held("a") || exists(s.locks+slot) {
		t.Errorf("status %d, held: %v, %s", status, s.held("a"), p.Output())
	}
}

func semaphore(slots int, words ...string) []string {
	return append([]string{"run", "--name", "s", "--slots", strconv.Itoa(slots)}, words...)
}

// fill starts runs of the semaphore s until its slots are taken, and their jobs run.
func (s *stage) fill(slots int, words ...string) (runs []*helper.Process) {
	s.Helper()
	for range slots {
		runs = append(runs, s.command(append(semaphore(slots, words...), "sleep", "600")...).Start(s))
	}
	helper.Eventually(s, "all run", func() bool {
		taken, _ := filepath.Glob(s.locks + "/lock.adlock." + host + ".run.s.slot-*")
		return len(taken) == slots && !slices.ContainsFunc(taken, func(lock string) bool { return !helper.Settled(lock) })
	})
	return runs
}

func TestASemaphoreAdmitsAsManyRunsAsItHasSlots(t *testing.T) {
	s := newStage(t)
	runs := s.fill(2)
	for slots, why := range map[int]string{2: "full: at most 2 runs of s at once", 1: "full: at most 1 run of s at once"} {
		s.refused(75, why, semaphore(slots, "--verbose", "true")...)
	}
	s.want(0, semaphore(3, "true")...)
	s.refused(75, "busy", "run", "--name", "s", "--verbose", "true")
	s.want(0, "run", "--name", "other", "--slots", "2", "true")
	runs[1].Kill(t)
	helper.Eventually(t, "its orphaned job is shown", func() bool { return s.adlock("status", "--failed", "--exit-code").Status == 1 })
}

func TestStopEndsAllRunsOfASemaphore(t *testing.T) {
	s := newStage(t)
	runs := s.fill(3)
	if r := s.adlock("stop", "--pause", "50ms", "s"); r.Status != 0 || strings.Count(r.Err, "\n") != 3 {
		t.Errorf("%+v", r)
	}
	for _, r := range runs {
		r.Wait(t)
	}
	s.want(0, semaphore(1, "true")...)
}

func TestALineOfACrontabMayBeASemaphore(t *testing.T) {
	s := newStage(t)
	line := ": s ADLOCK_SLOTS=2 ; exec sleep 600"
	for range 2 {
		s.command("shell", "-c", line).Start(s)
	}
	helper.Eventually(t, "both run", func() bool { return strings.Count(s.want(0, "log", "--event", "acquire").Out, "\n") == 2 })
	s.refused(75, "full: at most 2 runs of s at once", semaphore(2, "--verbose", "true")...)
	s.refused(64, "ADLOCK_SLOTS: counts the jobs of one program", "ADLOCK_SLOTS=2", "shell", "-c", ": s ADLOCK_PROGRAM=adlock ; true")
}
