package lockdir

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/test/support/must"
)

func TestSlotsAreListedInTheOrderOfTheirNames(t *testing.T) {
	k := newLocker(t)
	var owners []process.Identity
	for _, operand := range []string{"a", "b", "c", "d"} {
		owner := sleeper(t)
		owners = append(owners, owner)
		wantVerdict(t, k, slotted(owner, operand, 5), locker.Acquired)
	}
	must.Do(t, os.Mkdir(k.Dir.Path(motd.Slot(5).ActiveLock()), 0o700)) // cannot be read
	before := openFiles(t, k)
	slots, err := k.Slots()
	if left := openFiles(t, k) - before; left != 0 {
		t.Errorf("%d files are left open", left)
	}
	if err != nil || len(slots) != len(owners) {
		t.Fatalf("%+v, %v", slots, err)
	}
	for i, slot := range slots {
		if slot.Number != i+1 || slot.Name != motd.Slot(i+1) || !slot.Active.Held || !slot.Record.Owner.Same(owners[i]) {
			t.Errorf("slot %d is %+v", i+1, slot)
		}
	}
	met, err := failing(t, k, unix.SYS_GETDENTS64, 1, func() error { _, err := k.Slots(); return err })
	if !met || err == nil {
		t.Errorf("met %v: %v", met, err)
	}
}

func TestAnAtomIsListedWithItsReaders(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	wantVerdict(t, k, sharing(ask(owner)), locker.Acquired)
	entries, err := k.List()
	if err != nil || len(entries) != 1 || entries[0].Err != nil || len(entries[0].Readers) != 1 || !entries[0].Readers[0].Record.Owner.Same(owner) {
		t.Fatalf("%+v, %v", entries, err)
	}
	plantFile(t, k, readerLock(owner).String(), "damaged\n", 0)
	if entries, err := k.List(); err != nil || len(entries) != 1 || fault.KindOf(entries[0].Err) != fault.IO {
		t.Errorf("with a damaged reader: %+v, %v", entries, err)
	}
}

// foreign lists names that no file of adlock has, though they begin like one.
var foreign = []string{"lock.x", "lock.a.b.c.d.e", "last.notes", "last.a.b.c", "read.notes", "temp.notes"}

func plantForeign(t *testing.T, k *Locker) {
	t.Helper()
	for _, file := range foreign {
		must.Do(t, os.WriteFile(k.Dir.Path(file), []byte("a stranger's\n"), 0o600))
	}
}

func TestForeignFilesAreNeitherListedNorPruned(t *testing.T) {
	k, r := newLocker(t), slotted(sleeper(t), motd.Operand, 1)
	plantForeign(t, k)
	wantVerdict(t, k, r, locker.Acquired)
	entries, err := k.List()
	if err != nil || len(entries) != 1 || entries[0].Name != motdFiles || entries[0].Err != nil {
		t.Errorf("%+v, %v", entries, err)
	}
	if names, err := k.Prune(0); err != nil || len(names) != 0 {
		t.Errorf("pruned %v, %v", names, err)
	}
	for _, file := range foreign {
		if !isThere(k, file) {
			t.Errorf("%s is gone", file)
		}
	}
}

// A file whose name only begins like a lock's is no lock of the owner.
func TestAForeignFileDoesNotPreventARelease(t *testing.T) {
	k, r := newLocker(t), ask(sleeper(t))
	r.Slots = 1
	held := wantVerdict(t, k, r, locker.Acquired)
	must.Do(t, os.Mkdir(k.Dir.Path("lock."+r.Atom.Name().Prefix()+"notes"), 0o700))
	letGo(t, k, r, held)
	wantSlots(t, k, 0)
}
