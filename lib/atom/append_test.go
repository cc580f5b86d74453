package atom

import (
	"errors"
	"testing"
	"time"

	"adlock/lib/exit"
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

// Else a job that somebody failed to end would be run beside what is left of it.
func TestAnOwnerDoesNotReleaseWhatASurvivorHolds(t *testing.T) {
	k, owner, survivor := newKeeper(t), sleeper(t), sleeper(t)
	held := wantVerdict(t, k, ask(owner), Acquired)
	active, err := k.Dir.Active(motdFiles)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(active.Guard(time.Second), active.AppendSurvivors([]process.Identity{survivor}), active.Close()); err != nil {
		t.Fatal(err)
	}
	if err := k.Release(Return{Files: motdFiles, Token: held.Token}); exit.Code(err) != exit.NotPermitted {
		t.Errorf("released: %v", err)
	}
	end(t, owner)
	wantVerdict(t, k, ask(sleeper(t)), Busy)
	end(t, survivor)
	wantVerdict(t, k, ask(sleeper(t)), Acquired)
}
