package lockfile

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/locker"
	"adlock/test/support/intercept"
	"adlock/test/support/must"
)

// behind returns a newcomer that has found a free atom, and another one at the head of its line.
func behind(t *testing.T) (w *Waiting, head int) {
	t.Helper()
	d, r := newDir(t), locker.Request{Atom: motd}
	r.Wait = time.Hour
	head = must.Get(unix.Open(d.Path(motd.Name().Line()), unix.O_RDONLY|unix.O_CREAT|unix.O_CLOEXEC, 0o600))(t)
	must.Do(t, unix.Flock(head, unix.LOCK_EX))
	if w = NewWaiting(d, &r, nil); w.IsTurn(true, "") {
		t.Fatal("it is not the head")
	}
	w.InWay.Line = true
	return w, head
}

// The atom may have been taken and released meanwhile.
func TestANewcomerThatBecomesTheHeadLooksAtOnce(t *testing.T) {
	w, head := behind(t)
	w.watched = true
	must.Do(t, unix.Close(head))
	polls := 0
	intercept.Run(t, func() { w.Next(locker.Outcome{Verdict: locker.Busy}) }, func(intercept.Call) unix.Errno {
		polls++
		return 0
	}, unix.SYS_PPOLL)
	if polls > 0 {
		t.Errorf("it waits, on what it saw before: %d polls", polls)
	}
}

func TestAHeadIsNotPassedForAnAtomThatWasInUseMeanwhile(t *testing.T) {
	w, head := behind(t)
	defer unix.Close(head)
	if w.line.stalled == (stalled{}) {
		t.Fatal("the free atom is not remembered")
	}
	if !w.IsTurn(false, "") || w.line.stalled != (stalled{}) {
		t.Error("it is still, though another look has found the atom held")
	}
}
