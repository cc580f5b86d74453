package config

import (
	"testing"

	"adlock/lib/atom"
	"adlock/lib/locker"
	"adlock/test/helper"
)

func TestADenialNamesTheFileOfTheLockWhereThereIsOne(t *testing.T) {
	for want, remote := range map[string]bool{"lock.p.h.run.x": false, "p.h.run.x": true} {
		s := Defaults()
		s.Verbose, s.Remote, s.Request.FromStart = true, remote, true
		s.Request.Atom = atom.Atom{Program: "p", Host: "h", Operator: "run", Operand: "x"}
		said := helper.Stderr(t, func() { s.Tell(locker.Outcome{Verdict: locker.Busy, Reason: "busy"}, t.TempDir()) })
		if said != "adlock: "+want+": busy\n" {
			t.Errorf("remote %v: %q", remote, said)
		}
	}
}
