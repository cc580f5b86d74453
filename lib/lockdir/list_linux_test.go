package lockdir

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/lib/process"
)

func TestSlotsAreListedInTheOrderOfTheirNames(t *testing.T) {
	k := newLocker(t)
	var owners []process.Identity
	for _, operand := range []string{"a", "b", "c", "d"} {
		owner := sleeper(t)
		owners = append(owners, owner)
		wantVerdict(t, k, slotted(owner, operand, 5), locker.Acquired)
	}
	if err := os.Mkdir(k.Dir.Path(motd.Slot(5).ActiveLock()), 0o700); err != nil { // cannot be read
		t.Fatal(err)
	}
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
