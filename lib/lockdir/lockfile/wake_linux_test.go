package lockfile

import (
	"os"
	"testing"
	"time"
)

// queued returns a watch on a new directory in which these files have just been
// removed.
func queued(t *testing.T, files ...string) Watch {
	t.Helper()
	dir := newDir(t)
	for _, file := range files {
		must(t, os.WriteFile(dir.Path(file), nil, 0o600))
	}
	w := watching(t, dir)
	for _, file := range files {
		if err := os.Remove(dir.Path(file)); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func TestAWaitingNewcomerIsWokenByALockOfItsProgramAlone(t *testing.T) {
	for file, want := range map[string]bool{
		"lock.p.h.o.x": true, "lock.p.h.o.y": true, "lock.p.h.slot-1": true, "read.p.h.o.x.7": true,
		"lock.q.h.o.x": false, "lock.xp.h.o.x": false, "lock.q.p.h.x": false, "lock.p.g.o.x": false, "notes.p.h.o.x": false,
		"temp.0123456789abcdef0123456789abcdef": false,
	} {
		if got := queued(t, "lock.q.h.o.z", file, "lock.q.h.o.zz").sawOneGo("p.h."); got != want {
			t.Errorf("%s: %v", file, got)
		}
	}
}

// Every `adlock run --name` is of one program: those who wait for one name are not to be
// woken by all the others.
func TestOneThatWantsNoSlotIsWokenByItsOwnAtomAlone(t *testing.T) {
	for file, want := range map[string]bool{
		"lock.p.h.o.x": true, "read.p.h.o.x.7": true,
		"lock.p.h.o.y": false, "lock.p.h.o.xx": false, "lock.p.h.slot-1": false, "read.p.h.o.y.7": false, "last.p.h.o.x": true,
	} {
		if got := queued(t, "lock.q.h.o.z", file, "lock.q.h.o.zz").sawOneGo("p.h.o.x"); got != want {
			t.Errorf("%s: %v", file, got)
		}
	}
}

func TestAWaitEndsAsSoonAsALockGoes(t *testing.T) {
	w := queued(t, "lock.p.h.o.x")
	begun := time.Now()
	w.Wait("p.h.", 0, -1, time.Minute)
	if waited := time.Since(begun); waited > 20*time.Second {
		t.Errorf("woken after %v", waited)
	}
}
