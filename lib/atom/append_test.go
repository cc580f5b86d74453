package atom

import (
	"testing"
	"time"

	"adlock/lib/process"
)

func TestAJobIsBeingEndedWhileTheGuardIsHeldOrWhoWasRecordedLives(t *testing.T) {
	k, survivor := newKeeper(t), sleeper(t)
	token := wantVerdict(t, k, ask(sleeper(t)), Acquired).Token
	want := func(when string, want bool) {
		t.Helper()
		if got, err := k.BeingEnded(motdFiles, token); got != want || err != nil {
			t.Errorf("%s: %v, %v; want %v", when, got, err, want)
		}
	}
	want("nobody is at it", false)
	active, err := k.Dir.Active(motdFiles)
	if err != nil {
		t.Fatal(err)
	}
	if err := active.Guard(time.Second); err != nil {
		t.Fatal(err)
	}
	want("the guard is held", true)
	if err := active.AppendSurvivors([]process.Identity{survivor}); err != nil {
		t.Fatal(err)
	}
	active.Close()
	want("a survivor is recorded", true)
	end(t, survivor)
	want("the survivor is dead", false)
	if ending, err := k.BeingEnded(motdFiles, "another's"); ending || err != nil {
		t.Errorf("of another acquisition: %v, %v", ending, err)
	}
}
