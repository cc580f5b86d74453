package policy

import (
	"testing"
	"time"

	"adlock/lib/limit"
)

func TestAPauseDeniesWhateverElseIsFound(t *testing.T) {
	paused := Pause{On: true, Left: time.Hour, Why: "disk"}
	for claim, s := range map[string]Situation{
		"free": {}, "busy": {Active: Active{Held: true}}, "dead": {Active: Active{Held: true, Owner: Gone}},
		"too soon": {Last: Last{Completed: true}}, "its tick is used": {TickUsed: true},
	} {
		terms := Terms{Limits: Limits{IfElapsed: time.Hour}}
		without := Decide(terms, s)
		s.Pause = paused
		if d := Decide(terms, s); d.Step != Paused || d.Step.Granted() || d.Reason() != "paused: for 1h more (disk)" {
			t.Errorf("%s: %v, %q", claim, d.Step, d.Reason())
		}
		s.Pause.Inside = true
		if d := Decide(terms, s); d.Step != without.Step {
			t.Errorf("%s, from inside a job: %v, want %v", claim, d.Step, without.Step)
		}
	}
	if d := Decide(Terms{}, Situation{Pause: Pause{On: true, Left: limit.Never}}); d.Reason() != "paused: until it is resumed" {
		t.Errorf("%q", d.Reason())
	}
}
