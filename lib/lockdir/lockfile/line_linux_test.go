package lockfile

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/test/support/intercept"
	"adlock/test/support/must"
)

// behind returns a newcomer that has found a free atom, and another one at the head of its line.
func behind(t *testing.T) (w *Waiting, head int) {
	t.Helper()
	d, r := newDir(t), locker.Request{Atom: motd}
	r.Wait = time.Hour
	head = must.Get(unix.Open(d.Path(motd.Name().Line()), unix.O_RDONLY|unix.O_CREAT|unix.O_CLOEXEC, 0o600))(t)
	if w = NewWaiting(d, &r, nil); !w.IsTurn(true, "") || w.line.file == nil {
		t.Fatal("there is no other newcomer, and it is not the head")
	}
	w.Close(false)
	must.Do(t, unix.Flock(head, unix.LOCK_EX))
	if w = NewWaiting(d, &r, nil); w.IsTurn(true, "") {
		t.Fatal("it is not the head")
	}
	if !NewWaiting(d, &locker.Request{Atom: motd}, nil).IsTurn(true, "") {
		t.Error("a newcomer that does not wait has to queue")
	}
	w.InWay.Line = true
	return w, head
}

// The atom may have been taken and released meanwhile.
func TestANewQueueHeadChecksTheAtomAtOnce(t *testing.T) {
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

func TestAWaiterPassesAHeadThatLeavesAFreeAtomAloneTooLong(t *testing.T) {
	name := motd.Name()
	nothing := func(*Waiting) {}
	for claim, c := range map[string]struct {
		ago    time.Duration // when the newcomer saw the atom free
		acts   func(w *Waiting)
		token  string
		passes bool
	}{
		"just now": {-time.Hour, nothing, "", false}, "long ago": {time.Hour, nothing, "", true},
		"another owner has died": {time.Hour, nothing, "t", false},
		"it was in use":          {time.Hour, func(w *Waiting) { w.IsTurn(false, "") }, "", false},
		"it has completed":       {time.Hour, func(w *Waiting) { must.Do(t, w.dir.Stamp(name, record.Memory{})) }, "", false},
		"another has passed": {time.Hour, func(w *Waiting) {
			must.Do(t, errors.Join(w.dir.MarkRead("x"), os.Rename(w.dir.Path("read.x"), w.dir.Path(name.Line()))))
		}, "", false},
	} {
		w, head := behind(t)
		w.line.since = process.Monotonic() - c.ago
		c.acts(w)
		if passes := w.IsTurn(true, c.token); passes != c.passes || w.line.head != c.passes {
			t.Errorf("%s: passes: %v, is the head: %v", claim, passes, w.line.head)
		}
		w.Close(false)
		must.Do(t, unix.Close(head))
	}
}

func TestANewcomerKeepsItsPlaceInAStalledQueue(t *testing.T) {
	w, head := behind(t)
	name, place := motd.Name(), w.line.file
	granted, _ := w.line.join()
	if again, _ := w.line.join(); granted < 0 || again != granted || w.line.file != place || w.line.lookAfter() != stallMost {
		t.Errorf("it waits for %d, then for %d", granted, again)
	}
	began := time.Now()
	w.watched = true
	if w.Next(locker.Outcome{Verdict: locker.Busy}); time.Since(began) < stallMost {
		t.Errorf("it looks after %v", time.Since(began))
	}
	must.Do(t, w.dir.RemoveLine(name))
	if !exists(w.dir, name.Line()) {
		t.Error("a line that is in use was removed")
	}
	must.Do(t, w.dir.remove(name.Line())) // another newcomer has passed the head
	if granted, fresh := w.line.join(); granted >= 0 || !fresh || w.line.file == place {
		t.Errorf("it waits for %d", granted)
	}
	w.line.leave()
	must.Do(t, unix.Close(head))
	must.Do(t, w.dir.RemoveLine(name))
	intercept.Run(t, func() { // it removes no line that another newcomer makes after its look
		if err := w.dir.RemoveLine(name); err != nil || exists(w.dir, name.Line()) {
			t.Errorf("removed again: %v", err)
		}
	}, func(intercept.Call) unix.Errno { return unix.EIO }, unix.SYS_UNLINKAT)
	must.Do(t, unix.Mkfifo(w.dir.Path(name.Line()), 0o600)) // nothing to wait in
	if granted, fresh := w.line.join(); granted >= 0 || fresh || w.dir.RemoveLine(name) == nil {
		t.Errorf("it waits for %d in a FIFO", granted)
	}
	for range 200 {
		if after := (&line{}).lookAfter(); after < pollBehind/2 || after >= pollBehind*3/2 {
			t.Fatalf("it looks after %v", after)
		}
	}
}

func TestOnlyAnExclusiveRunMayStayTheHeadOfTheQueue(t *testing.T) {
	for _, c := range []struct{ acquired, shared, may, kept bool }{
		{true, false, true, true}, {false, false, true, false}, {true, true, true, false}, {true, false, false, false},
	} {
		r, leave := locker.Request{Atom: motd, Shared: c.shared}, func() {}
		if c.may {
			r.Keep = func(call func()) { leave = call }
		}
		w := NewWaiting(newDir(t), &r, nil)
		w.line.join()
		if w.Close(c.acquired); w.line.head != c.kept {
			t.Errorf("%+v: kept is %v", c, w.line.head)
		}
		leave()
	}
}
