//go:build soak

package network

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"adlock/lib/lease"
	"adlock/lib/limit"
	"adlock/lib/process"
	"adlock/test/support/helper"
)

// A person removes a lock on the FTP server, and a newcomer makes a generation of the same number.
// Neither owner takes the other owner's generation for its own, or releases it.
func TestAnOwnerOnFTPFindsThatItsGenerationWasMadeAgain(t *testing.T) {
	generation := "/lock.p.shared.o.x.1"
	t.Run("and ends its job", func(t *testing.T) {
		f := startFTP(t, "")
		a, b := f.host(t).brief(), f.host(t).brief()
		owner := a.start(t, "sleep 60")
		f.removed(t, generation)
		next := b.start(t, "sleep 6; echo done")
		if status := owner.Wait(t); status == 0 || !strings.Contains(owner.Output(), "lost: the lease is gone") {
			t.Errorf("%d: %s", status, owner.Output())
		}
		endsWith(t, next, 0, "done\n")
	})
	t.Run("and does not give it back", func(t *testing.T) {
		f := startFTP(t, "")
		a, b := f.host(t).brief(), f.host(t).brief()
		file := t.TempDir() + "/go"
		owner := a.start(t, until(file))
		f.removed(t, generation)
		next := b.start(t, "sleep 60")
		touch(t, file)
		owner.Wait(t)
		f.host(t).brief().run(t, "echo ran").Denied(t)
		if next.Ended() || !strings.Contains(owner.Output(), "lost: ") {
			t.Errorf("the first: %s; the next: %s", owner.Output(), next.Output())
		}
	})
}

// A newcomer is stopped after it has won the atom. Another process owns the atom by now, and keeps
// its record.
func TestAnOwnerOnFTPThatHasLostItsGenerationNotesNothingThere(t *testing.T) {
	name := aRecord(t, false).Atom.Name()
	for how, next := range map[string]int{"removed, and made again": 1, "passed": 2} {
		t.Run(how, func(t *testing.T) {
			f := startFTP(t, "")
			ctx := limited(t)
			enter := func() (lease.Place, lease.Record) {
				own := aRecord(t, false)
				place, seen, err := openFTP(t, f.address).Enter(ctx, name, own, limit.ShortestLease, true)
				if err != nil || seen.Held {
					t.Fatal(seen, err)
				}
				return place, own
			}
			late, own := enter()
			f.removed(t, name.Generation(1))
			_, others := enter()
			if next > 1 {
				if err := os.Rename(f.root+"/"+name.Generation(1), f.root+"/"+name.Generation(next)); err != nil {
					t.Fatal(err)
				}
			}
			if err := late.Note(ctx, own); !errors.Is(err, lease.ErrGone) {
				t.Error(err)
			}
			file := f.root + "/" + name.Generation(next) + "/owner"
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if found, err := lease.ParseRecord(file, text); err != nil || found.Token != others.Token {
				t.Errorf("the record is of %s, and not of %s: %v", found.Token, others.Token, err)
			}
		})
	}
}

// An owner whose record was removed writes it again, and stays.
func TestAnOwnerOnFTPWhoseRecordWasRemovedPutsItAgain(t *testing.T) {
	f := startFTP(t, "")
	h := f.host(t).brief()
	record := f.root + "/lock.p.shared.o.x.1/owner"
	owner := h.start(t, "sleep 7; echo done")
	if err := os.Remove(record); err != nil {
		t.Fatal(err)
	}
	helper.Eventually(t, "it is there again", func() bool { return exists(record) })
	f.host(t).brief().run(t, "echo ran").Denied(t)
	endsWith(t, owner, 0, "done\n")
	f.host(t).brief().run(t, "echo ran").Ran(t)
}

func (f *ftpd) removed(t testing.TB, directory string) {
	t.Helper()
	if !exists(filepath.Join(f.root, directory)) {
		t.Fatal(directory + " is not there")
	}
	if err := os.RemoveAll(filepath.Join(f.root, directory)); err != nil {
		t.Fatal(err)
	}
}

// A person removes the generation of an owner that is cut off. A newcomer that has seen that
// generation waits for the owner's lease, and then makes the next generation: so each owner has a
// fence of its own.
func TestAWaiterOnFTPWaitsForAnOwnerThatWasRemovedByHand(t *testing.T) {
	f := startFTP(t, "")
	ctx := limited(t)
	enter := func(length time.Duration) (lease.Place, lease.Snapshot) {
		place, seen, err := openFTP(t, f.address).Enter(ctx, "p.h.o.x", aRecord(t, false), length, true)
		if err != nil {
			t.Fatal(err)
		}
		return place, seen
	}
	const length = 3 * time.Second
	owner, _ := enter(length)
	if err := owner.Renew(ctx); err != nil {
		t.Fatal(err)
	}
	waiter, seen := enter(time.Minute)
	if !seen.Held || seen.Owner.Lease != length {
		t.Fatalf("%+v", seen)
	}
	f.removed(t, "/lock.p.h.o.x.1")
	began := process.Boottime()
	helper.Eventually(t, "it has the atom", func() bool {
		var err error
		if seen, err = waiter.Look(ctx); err != nil {
			t.Fatal(err)
		}
		return !seen.Held
	})
	if waited := process.Boottime() - began; waited < length {
		t.Errorf("it waited for %v", waited)
	}
	if waiter.Fence() != 2 {
		t.Errorf("its fence is %d", waiter.Fence())
	}
	if err := owner.Renew(ctx); err != lease.ErrGone {
		t.Errorf("the owner: %v", err)
	}
}
