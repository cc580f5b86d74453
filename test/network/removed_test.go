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
	"adlock/lib/process"
	"adlock/test/support/helper"
	"adlock/test/support/must"
)

func (f *ftpd) removed(t testing.TB, directory string) {
	t.Helper()
	if !exists(filepath.Join(f.Root, directory)) {
		t.Fatal(directory + " is not there")
	}
	must.Do(t, os.RemoveAll(filepath.Join(f.Root, directory)))
}

// A person removes a lock on the FTP server, and a newcomer makes a generation of the same number. Neither
// owner mistakes the other's generation for its own, or releases it.
func TestAnFTPOwnerGivesUpAGenerationMadeByAnother(t *testing.T) {
	for how, waits := range map[string]bool{"and ends its job": false, "and does not give it back": true} {
		t.Run(how, func(t *testing.T) {
			first, second, script := t.TempDir()+"/first", t.TempDir()+"/second", "sleep 60"
			if waits {
				script = until(first)
			}
			f := startFTP(t, "")
			a, b := f.host(t).brief(), f.host(t).brief()
			owner := a.start(t, script)
			f.removed(t, "/lock.p.shared.o.x.1")
			next := b.start(t, until(second)+"echo done")
			touch(t, first)
			owner.Wait(t)
			if said := owner.Output(); !strings.Contains(said, "lost: the lease is gone") {
				t.Errorf("the first: %s", said)
			}
			b.run(t, "echo ran").Denied(t)
			touch(t, second)
			endsWith(t, next, 0, "done\n")
		})
	}
}

// A newcomer stands still after it has acquired the atom. Meanwhile another process comes to own the atom;
// the newcomer must not replace that owner's record.
func TestAnFTPOwnerThatLostItsGenerationWritesNoRecord(t *testing.T) {
	for how, next := range map[string]string{"removed, and made again": "/lock.p.h.o.x.1", "passed": "/lock.p.h.o.x.2"} {
		t.Run(how, func(t *testing.T) {
			f := startFTP(t, "")
			late := enter(t, openFTP(t, f.Address), false, false, lasts)
			f.removed(t, "/lock.p.h.o.x.1")
			other := enter(t, openFTP(t, f.Address), false, false, lasts)
			if !exists(f.Root + next) {
				must.Do(t, os.Rename(f.Root+"/lock.p.h.o.x.1", f.Root+next))
			}
			if err := late.Note(limited(t), late.record); !errors.Is(err, lease.ErrGone) {
				t.Error(err)
			}
			text := must.Get(os.ReadFile(f.Root + next + "/owner"))(t)
			if found, err := lease.ParseRecord("", text); err != nil || found.Token != other.record.Token {
				t.Errorf("the record is of %s, and not of %s: %v", found.Token, other.record.Token, err)
			}
		})
	}
}

func TestAnFTPOwnerStoresItsRemovedRecordAgain(t *testing.T) {
	f := startFTP(t, "")
	h := f.host(t).brief()
	record := f.Root + "/lock.p.shared.o.x.1/owner"
	owner := h.start(t, "sleep 7; echo done")
	must.Do(t, os.Remove(record))
	helper.Eventually(t, "it is there again, with its age", func() bool {
		text, err := os.ReadFile(record)
		return err == nil && strings.Contains(string(text), "\nheld=")
	})
	h.run(t, "echo ran").Denied(t)
	endsWith(t, owner, 0, "done\n")
	h.run(t, "echo ran").Ran(t)
}

// A person removes the generation of an owner that is cut off. A newcomer that has seen it waits for the
// owner's lease, and then makes the next generation: so the two owners have different fencing tokens.
func TestAnFTPWaiterWaitsOutTheLeaseOfARemovedOwner(t *testing.T) {
	const length = 3 * time.Second
	f, ctx := startFTP(t, ""), limited(t)
	owner := enter(t, openFTP(t, f.Address), false, false, length)
	must.Do(t, owner.Renew(ctx))
	waiter := enter(t, openFTP(t, f.Address), false, true, lasts)
	f.removed(t, "/lock.p.h.o.x.1")
	began := process.Boottime()
	helper.Eventually(t, "it has the atom", func() bool {
		seen := must.Get(waiter.Look(ctx))(t)
		return !seen.Held
	})
	if waited := process.Boottime() - began; waited < length || waiter.Fence() != 2 {
		t.Errorf("it waited for %v, and its fence is %d", waited, waiter.Fence())
	}
	if err := owner.Renew(ctx); err != lease.ErrGone {
		t.Errorf("the owner: %v", err)
	}
}
