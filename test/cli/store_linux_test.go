package cli

import (
	"strings"
	"testing"

	"adlock/test/support/helper"
)

// with runs a verb with a setting in its environment, and expects success.
func (s *stage) with(setting string, words ...string) helper.Result {
	s.Helper()
	c := s.command(words...)
	c.Env = append(c.Env, setting)
	r := c.Run(s.T)
	if r.Status != 0 {
		s.Errorf("%s %q: %+v", setting, words, r)
	}
	return r
}

func TestEveryVerbUsesTheLockDirectoryThatTheStoreNames(t *testing.T) {
	s := newStage(t)
	store := "ADLOCK_STORE=" + helper.Dir(t)
	s.with(store, "run", "--program", "job", "--name", "elsewhere", "--expire-after", "auto", "true")
	if exists(s.lastOf("elsewhere")) {
		t.Fatal("it ran in the usual directory")
	}
	for _, line := range []string{"status", "log", "report", "timeline", "metrics", "tune"} {
		here, there := s.want(0, line), s.with(store, line)
		if !strings.Contains(there.Out, "elsewhere") {
			t.Errorf("%s in the store: %+v", line, there)
		}
		if strings.Contains(here.Out, "elsewhere") {
			t.Errorf("%s in the usual directory: %s", line, here.Out)
		}
	}
	s.with(store, "tune", "--reset", "elsewhere")
	if r := s.with(store, "clear", "--last", "--older", "0"); r.Out != "last.job.dax.run.elsewhere\n" {
		t.Errorf("pruned: %+v", r)
	}
}

func TestWithAStoreTheLockDirectoryHoldsTheRunlog(t *testing.T) {
	s := newStage(t)
	s.want(0, "run", "--program", "job", "--name", "here", "true")
	for _, verb := range []string{"log", "report", "timeline", "metrics"} {
		r := s.with("ADLOCK_STORE=etcd://127.0.0.1:1/p", verb)
		if !strings.Contains(r.Out, "here") || strings.Count(r.Err, "adlock: ") > 1 {
			t.Errorf("%s: %+v", verb, r)
		}
	}
}
