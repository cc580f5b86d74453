package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"adlock/test/support/helper"
)

// named returns the NAME of an atom that onceNamed has taken before.
func (s *stage) named(operand string) string {
	s.Helper()
	found, _ := filepath.Glob(s.locks + "/last.*." + operand)
	if len(found) != 1 {
		s.Fatalf("%v", found)
	}
	return strings.TrimPrefix(filepath.Base(found[0]), "last.")
}

func TestAPausedAtomDeniesNewcomersUntilItIsResumed(t *testing.T) {
	s := newStage(t)
	s.once().Ran(t)
	name := s.named("a")
	s.want(0, "pause", name, "--for", "never", "--why", "new disk")
	s.once().Denied(t)
	for _, r := range []helper.Result{s.once("--dry-run"), s.adlock("status"), s.adlock("log"), s.adlock("report")} {
		if !strings.Contains(r.Out, "paused: until it is resumed (new disk)") && !strings.Contains(r.Out, "1 paused") {
			t.Errorf("%+v", r)
		}
	}
	s.adlock("metrics").Is(t, 0, "…adlock_paused_since_timestamp_seconds{program=…", "")
	s.adlock("pause").Is(t, 0, name+": paused: until it is resumed (new disk); began …", "")
	s.adlock("pause", "--json").Is(t, 0, `[{"atom":"`+name+`","age_seconds":…,"why":"new disk"}]`+"\n", "")
	s.adlock("clear", "--last", "--older", "0")
	s.once().Denied(t)
	s.once("--if-elapsed=1h", "--wait=10ms").Denied(t)
	s.want(0, "resume", name)
	s.adlock("pause", "--json").Is(t, 0, "[]\n", "")
	s.once().Ran(t)
}

func TestAWaiterWaitsThroughAPause(t *testing.T) {
	s := newStage(t)
	s.once().Ran(t)
	s.want(0, "pause", s.named("a"), "--for", "1h")
	s.once().Denied(t)
	s.want(0, "pause", s.named("a"), "--for", "1s")
	s.once("--wait=1m").Ran(t)
}

func TestARunningJobMayAcquirePausedAtoms(t *testing.T) {
	s := newStage(t)
	s.onceNamed("inner").Ran(t)
	s.want(0, "pause", s.named("inner"), "--for", "never")
	s.onceNamed("inner").Denied(t)
	inner := append([]string{helper.Binary(t)}, append(jobNamed("inner"), "--", "echo", "ran")...)
	s.adlock(append(append(jobNamed("outer"), "--"), inner...)...).Ran(t)
}

func TestAPauseOrResumeWithWrongArgumentsIsRefused(t *testing.T) {
	s := newStage(t)
	s.once().Ran(t)
	for _, args := range [][]string{
		{"pause", s.named("a")}, {"pause", "--for=1h"}, {"pause", "--for=1h", "nothing"},
		{"pause", "--for=60", s.named("a")}, {"pause", "--for=1h", "--all", s.named("a")}, {"resume"},
		{"pause", "--json", s.named("a")}, {"pause", "--why=x"},
		{"pause", "--for=1h", "--why=" + strings.Repeat("x", 1025), s.named("a")}, {"pause", "--for=1h", "job"},
	} {
		s.refused(64, "", args...)
	}
}
