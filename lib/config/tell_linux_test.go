package config

import (
	"testing"

	"adlock/lib/atom"
	"adlock/lib/locker"
	"adlock/test/support/helper"
)

func TestADenialNamesTheAtomAsOtherMessagesDo(t *testing.T) {
	for _, remote := range []bool{false, true} {
		s := Defaults()
		s.Verbose, s.Remote, s.Request.FromStart = true, remote, true
		s.Request.Atom = atom.Atom{Program: "p", Host: "h", Operator: "run", Operand: "x"}
		said := helper.Stderr(t, func() { s.Tell(locker.Outcome{Verdict: locker.Busy, Reason: "busy"}, t.TempDir()) })
		if said != "adlock: run x: busy\n" {
			t.Errorf("remote %v: %q", remote, said)
		}
	}
}
