package cli

import (
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"adlock/test/support/helper"
)

// threadOf returns a thread of the process that is not its first.
func threadOf(t *testing.T, pid int) (id int) {
	t.Helper()
	helper.Eventually(t, "it has threads", func() bool {
		tasks, _ := filepath.Glob("/proc/" + itoa(pid) + "/task/*")
		i := slices.IndexFunc(tasks, func(task string) bool { return filepath.Base(task) != itoa(pid) })
		if i >= 0 {
			id, _ = strconv.Atoi(filepath.Base(tasks[i]))
		}
		return i >= 0
	})
	return id
}

func TestAThreadIsNotTakenForAProcess(t *testing.T) {
	s := newStage(t)
	holder, other := s.hold("a"), s.hold("b")
	thread := threadOf(t, holder.PID)
	says := itoa(thread) + ": is a thread of process " + itoa(holder.PID)
	s.refused(64, says, "kill-carefully", itoa(other.PID), itoa(thread))
	s.refused(64, says, "kill-carefully", "--dry-run", itoa(thread))
	if holder.Ended() || other.Ended() {
		t.Error("a process was ended")
	}
}
