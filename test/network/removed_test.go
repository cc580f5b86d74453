package network

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"adlock/test/helper"
)

// Somebody removes a lock on the FTP server by hand, and a newcomer makes a generation of
// the same number: neither owner takes the other's for its own, nor gives that back.
func TestWhoseGenerationOnFTPWasRemovedAndMadeAgainKnowsIt(t *testing.T) {
	generation := "/lock.p.shared.o.x.1"
	t.Run("and ends its job", func(t *testing.T) {
		f := startFTP(t, "")
		a, b := f.host(t), f.host(t)
		owner := a.start(t, "sleep 60")
		f.removed(t, generation)
		next := b.start(t, "sleep 6; echo done")
		if status := owner.Wait(t); status == 0 || !strings.Contains(owner.Output(), "lost: the lease is gone") {
			t.Errorf("%d: %s", status, owner.Output())
		}
		if status := next.Wait(t); status != 0 || next.Output() != "done\n" {
			t.Errorf("the next: %d %s", status, next.Output())
		}
	})
	t.Run("and does not give it back", func(t *testing.T) {
		f := startFTP(t, "")
		a, b := f.host(t), f.host(t)
		file := t.TempDir() + "/go"
		owner := a.start(t, "until [ -e '"+file+"' ]; do sleep 0.05; done")
		f.removed(t, generation)
		next := b.start(t, "sleep 60")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		owner.Wait(t)
		f.host(t).run(t, "echo ran").Denied(t)
		if next.Ended() || !strings.Contains(owner.Output(), "lost: ") {
			t.Errorf("the first: %s; the next: %s", owner.Output(), next.Output())
		}
	})
}

// An owner whose record was removed puts it again, and stays.
func TestAnOwnerOnFTPWhoseRecordWasRemovedPutsItAgain(t *testing.T) {
	f := startFTP(t, "")
	h := f.host(t)
	record := f.root + "/lock.p.shared.o.x.1/owner"
	owner := h.start(t, "sleep 7; echo done")
	if err := os.Remove(record); err != nil {
		t.Fatal(err)
	}
	helper.Eventually(t, "it is there again", func() bool { return exists(record) })
	f.host(t).run(t, "echo ran").Denied(t)
	if status := owner.Wait(t); status != 0 || owner.Output() != "done\n" {
		t.Errorf("%d %s", status, owner.Output())
	}
	f.host(t).run(t, "echo ran").Ran(t)
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
