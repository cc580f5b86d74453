package store

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/process"
)

// post returns both ends of a guard's line: the locksmith's, and the guard's.
func post(t *testing.T) (*guard, int) {
	t.Helper()
	ours, theirs, err := Socketpair()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(theirs) })
	return &guard{line: os.NewFile(uintptr(ours), "guard")}, theirs
}

func TestAGuardThatIsDismissedDoesNothing(t *testing.T) {
	g, line := post(t)
	g.arm(process.Boottime()+time.Hour, time.Second)
	g.dismiss()
	g.dismiss()
	if _, why := awaitTrouble(line); why != nil {
		t.Error(why)
	}
}

func TestAGuardThatWasNeverArmedDoesNothing(t *testing.T) {
	g, line := post(t)
	g.line.Close()
	if _, why := awaitTrouble(line); why != nil {
		t.Error(why)
	}
}

func TestAGuardActsWhenItsLocksmithIsGone(t *testing.T) {
	g, line := post(t)
	g.arm(process.Boottime()+time.Hour, time.Second)
	g.line.Close()
	pause, why := awaitTrouble(line)
	if why == nil || pause != 4*time.Second {
		t.Errorf("%v, pause %v", why, pause)
	}
}

func TestAGuardActsInTimeWhenItsLocksmithIsSilent(t *testing.T) {
	g, line := post(t)
	g.arm(process.Boottime()+time.Hour, time.Second)
	at := process.Boottime() + 50*time.Millisecond
	g.arm(at, time.Millisecond) // the last word counts
	pause, why := awaitTrouble(line)
	if why == nil || pause != time.Millisecond || process.Boottime() < at {
		t.Errorf("%v, pause %v, %v early", why, pause, at-process.Boottime())
	}
}
