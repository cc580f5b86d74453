package lockfile

import (
	"adlock/test/support/helper"
	"os"
	"testing"
	"time"
)

// queued returns a watch on a new directory from which these files have just been removed.
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

// Waiters link locks for a moment and remove them again: these files would wake them and each
// other without end.
func TestTheFilesInTheWayAloneWakeAWaiter(t *testing.T) {
	inWay := []string{"lock.p.h.slot-1", "lock.p.h.slot-2", "read.p.h.o.x.7"}
	for file, want := range map[string]bool{
		"lock.p.h.slot-1": true, "lock.p.h.slot-2": true, "read.p.h.o.x.7": true,
		"lock.p.h.slot-3": false, "lock.p.h.slot-11": false, "lock.p.h.o.x": false, "read.p.h.o.x.77": false, "read.p.h.o.x": false,
		"temp.0123456789abcdef0123456789abcdef": false,
	} {
		if got := queued(t, "lock.q.h.o.z", file, "lock.q.h.o.zz").sawOneGo(inWay); got != want {
			t.Errorf("%s: %v", file, got)
		}
	}
}

func TestAWaitEndsAsSoonAsALockGoes(t *testing.T) {
	w := queued(t, "lock.p.h.o.x")
	begun := time.Now()
	w.Wait([]string{"lock.p.h.o.x"}, nil, -1, time.Hour)
	if waited := time.Since(begun); waited > helper.Patience {
		t.Errorf("woken after %v", waited)
	}
}
