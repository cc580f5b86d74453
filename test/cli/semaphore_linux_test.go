package cli

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"adlock/test/support/helper"
)

// semaphore is a run of the semaphore s.
func semaphore(slots int, words ...string) []string {
	return append([]string{"run", "--name", "s", "--slots", strconv.Itoa(slots)}, words...)
}

// fill starts runs of the semaphore s until its slots are taken.
func (s *stage) fill(slots int, words ...string) (runs []*helper.Process) {
	s.Helper()
	for range slots {
		runs = append(runs, s.command(append(semaphore(slots, words...), "sleep", "600")...).Start(s))
	}
	helper.Eventually(s, "all run", func() bool { return strings.Count(s.want(0, "log", "--event", "acquire").Out, "\n") == slots })
	return runs
}

func TestASemaphoreAdmitsSoManyRunsOfItsName(t *testing.T) {
	s := newStage(t)
	s.fill(2)
	for slots, why := range map[int]string{2: "full: 2 runs of s are under way", 1: "full: a run of s is under way"} {
		s.refused(75, why, semaphore(slots, "--verbose", "true")...)
	}
	s.want(0, semaphore(3, "true")...)
	s.refused(75, "busy", "run", "--name", "s", "--verbose", "true")
	s.want(0, "run", "--name", "other", "--slots", "2", "true")
}

func TestASemaphoreLeavesOneLastLock(t *testing.T) {
	s := newStage(t)
	for range 3 {
		s.want(0, semaphore(4, "true")...)
	}
	files, err := os.ReadDir(s.locks)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if left := file.Name(); strings.HasPrefix(left, "lock.") || strings.HasPrefix(left, "last.") && left != "last.adlock.dax.run.s" {
			t.Error(left)
		}
	}
}

func TestAStopOfASemaphoreEndsAllItsRuns(t *testing.T) {
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

func TestAPauseHoldsBackEveryRunOfASemaphore(t *testing.T) {
	s := newStage(t)
	s.want(0, semaphore(2, "true")...)
	s.want(0, "pause", "--for", "1h", "s")
	s.refused(75, "paused", semaphore(2, "--verbose", "true")...)
	s.want(0, "resume", "s")
	s.want(0, semaphore(2, "true")...)
}

func TestARunOfASemaphoreIsEndedAtItsLimit(t *testing.T) {
	s := newStage(t)
	s.refused(124, "ended by force", semaphore(2, "--expire-after", "200ms", "--pause", "50ms", "sleep", "600")...)
}

func TestANestedRunOfASemaphoreTakesASlotOfItsOwn(t *testing.T) {
	s := newStage(t)
	r := s.command("run", "--name", "s", "--slots", "1", "--", "sh", "-c",
		`"$0" run --name t --slots 1 -- true && exec "$0" run --name s --slots 1 --verbose -- true`, helper.Binary(t)).Run(t)
	if r.Status != 75 || !strings.Contains(r.Err, "full: a run of s is under way") {
		t.Errorf("%+v", r)
	}
}
