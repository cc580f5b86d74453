package locker

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/lib/flock"
	"adlock/test/support/helper"
)

func TestANewcomerDoesNotTryTheAtomWhileItWaitsForTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	holder, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	locks := func() error { return unix.Flock(int(holder.Fd()), unix.LOCK_EX|unix.LOCK_NB) }
	if err := locks(); err != nil {
		t.Fatal(err)
	}
	r := NewRequest()
	if r.Flock, err = flock.Open(path, false, false); err != nil {
		t.Fatal(err)
	}
	tried := 0
	denied := func() (Outcome, error) { tried++; return Outcome{Verdict: Busy}, nil }
	if _, err := r.Flock.Await(); err != nil {
		t.Fatal(err)
	}
	if o, err := r.withFile(denied); err != nil || o.Verdict != Busy || !o.IsFile() || tried != 0 {
		t.Errorf("%+v, %v, tried %d times", o, err, tried)
	}
	if err := unix.Flock(int(holder.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	helper.Eventually(t, "it is given the file", func() bool { return !r.Flock.IsAwaited() })
	if o, err := r.withFile(denied); err != nil || o.IsFile() || tried != 1 {
		t.Errorf("%+v, %v, tried %d times", o, err, tried)
	}
	if err := locks(); err != nil {
		t.Errorf("a newcomer without the atom keeps the file: %v", err)
	}
}
