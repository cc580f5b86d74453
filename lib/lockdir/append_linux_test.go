package lockdir

import (
	"errors"
	"testing"
	"time"

	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/lib/process"
)

// BeingEnded stays true when the recorded members are dead: a member may have started another
// process just before its death.
func TestAJobIsBeingEndedUnderAGuardOrOnceMembersAreRecorded(t *testing.T) {
	k, survivor := newLocker(t), sleeper(t)
	token := wantVerdict(t, k, ask(sleeper(t)), locker.Acquired).Token
	want := func(when string, want bool) {
		t.Helper()
		if got, err := k.BeingEnded(motdFiles, token); got != want || err != nil {
			t.Errorf("%s: %v, %v; want %v", when, got, err, want)
		}
	}
	want("no process holds the guard", false)
	active, err := k.Dir.Active(motdFiles)
	must(t, err)
	must(t, active.Guard(time.Second))
	want("the guard is held", true)
	must(t, active.AppendSurvivors([]process.Identity{survivor}))
	active.Close()
	want("a survivor is recorded", true)
	end(t, survivor)
	want("the survivor is dead", true)
	if ending, err := k.BeingEnded(motdFiles, "another's"); ending || err != nil {
		t.Errorf("for another acquisition: %v, %v", ending, err)
	}
}

// If the owner released the atom, it would run beside the survivor of a failed ending.
func TestAnOwnerDoesNotReleaseWhatASurvivorHolds(t *testing.T) {
	k, owner, survivor := newLocker(t), sleeper(t), sleeper(t)
	held := wantVerdict(t, k, ask(owner), locker.Acquired)
	active, err := k.Dir.Active(motdFiles)
	must(t, err)
	if err := errors.Join(active.Guard(time.Second), active.AppendSurvivors([]process.Identity{survivor}), active.Close()); err != nil {
		t.Fatal(err)
	}
	if err := k.Release(locker.ReleaseRequest{Name: motdFiles, Token: held.Token}); fault.KindOf(err) != fault.NotPermitted {
		t.Errorf("released: %v", err)
	}
	end(t, owner)
	wantVerdict(t, k, ask(sleeper(t)), locker.Busy)
	end(t, survivor)
	wantVerdict(t, k, ask(sleeper(t)), locker.Acquired)
}
