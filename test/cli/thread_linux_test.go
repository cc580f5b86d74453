package cli

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"adlock/test/support/helper"
)

// threadOf returns the id and start time of a thread that is not the first.
func threadOf(t *testing.T, pid int) (id int, start string) {
	t.Helper()
	helper.Eventually(t, "it has threads", func() bool {
		tasks, _ := filepath.Glob("/proc/" + itoa(pid) + "/task/*")
		for _, task := range tasks {
			id, _ = strconv.Atoi(filepath.Base(task))
			text, err := os.ReadFile(task + "/stat")
			if err == nil && id != pid {
				start = strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+2:]))[19]
				return true
			}
		}
		return false
	})
	return id, start
}

func TestAThreadIsNotTakenForAProcess(t *testing.T) {
	s := newStage(t)
	holder, other := s.hold("a"), s.hold("b")
	thread, _ := threadOf(t, holder.PID)
	says := itoa(thread) + ": is a thread of process " + itoa(holder.PID)
	s.refused(64, says, "kill-carefully", itoa(other.PID), itoa(thread))
	s.refused(64, says, "kill-carefully", "--dry-run", itoa(thread))
	if holder.Ended() || other.Ended() {
		t.Error("a process was ended")
	}
}

func TestALockWhoseOwnerIsAThreadIsStuck(t *testing.T) {
	s := newStage(t)
	holder, bystander := s.hold("a"), s.hold("b")
	thread, start := threadOf(t, bystander.PID)
	var lines []string
	for line := range strings.Lines(s.read(s.lockOf("a"))) {
		switch key, _, _ := strings.Cut(line, "="); key {
		case itoa(holder.PID) + "\n":
			line = itoa(thread) + "\n"
		case "start":
			line = "start=" + start + "\n"
		case "inode", "session", "command": // a thread has none of its own
			continue
		}
		lines = append(lines, line)
	}
	must(t, os.WriteFile(s.lockOf("a"), []byte(strings.Join(lines, "")), 0o600))
	says := "is a thread of process " + itoa(bystander.PID)
	s.refused(77, says, "kill-carefully", "--lock", s.lockOf("a"))
	s.refused(77, says, "kill-carefully", "--lock", "--dry-run", s.lockOf("a"))
	s.refused(77, says, "run", "--program", "job", "--name", "a", "--expire-after", "0", "true")
	s.want(75, "run", "--program", "job", "--name", "a", "true")
	if bystander.Ended() {
		t.Error("the process was ended")
	}
}
