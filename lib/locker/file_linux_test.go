package locker

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/lib/flock"
	"adlock/lib/policy"
	"adlock/test/support/helper"
	"adlock/test/support/must"
)

func TestANewcomerDoesNotTryTheAtomWhileItAwaitsTheFlockFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	holder := must.Get(os.Create(path))(t)
	defer holder.Close()
	locks := func() error { return unix.Flock(int(holder.Fd()), unix.LOCK_EX|unix.LOCK_NB) }
	must.Do(t, locks())
	r, rec := NewRequest(), Recorder{}
	r.Flock = must.Get(flock.Open(path, false, false))(t)
	tried := 0
	denied := func() (Outcome, error) { tried++; return Outcome{Verdict: Busy}, nil }
	must.Get(r.Flock.Await())(t)
	if o, err := rec.WatchFirst(&r, -1, denied); err != nil || o.Verdict != Busy || !o.IsFile() || tried != 0 {
		t.Errorf("%+v, %v, tried %d times", o, err, tried)
	}
	must.Do(t, unix.Flock(int(holder.Fd()), unix.LOCK_UN))
	helper.Eventually(t, "it is given the file", func() bool { return !r.Flock.IsAwaited() })
	if o := r.fileTaken(); o.inWay.Active.Owner == policy.Ancestor { // it was granted after the last look
		t.Error("a newcomer keeps itself out")
	}
	if o, err := rec.WatchFirst(&r, -1, denied); err != nil || o.IsFile() || tried != 1 {
		t.Errorf("%+v, %v, tried %d times", o, err, tried)
	}
	must.Do(t, locks()) // a newcomer without the atom does not keep the file
}
