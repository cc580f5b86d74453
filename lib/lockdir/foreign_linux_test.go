package lockdir

import (
	"os"
	"testing"

	"adlock/lib/atom"
	"adlock/lib/locker"
)

// foreign are names that no adlock file has, though they begin with adlock's words.
var foreign = []string{"lock.x", "lock.a.b.c.d.e", "last.notes", "last.a.b.c", "read.notes", "temp.notes"}

func plantForeign(t *testing.T, k *Locker) {
	t.Helper()
	for _, file := range foreign {
		must(t, os.WriteFile(k.Dir.Path(file), []byte("a stranger's\n"), 0o600))
	}
}

func TestAForeignFileIsNoAtom(t *testing.T) {
	k := newLocker(t)
	plantForeign(t, k)
	r := ask(sleeper(t))
	r.Slots = 1
	wantVerdict(t, k, r, locker.Acquired)
	entries, err := k.List()
	if err != nil || len(entries) != 1 || entries[0].Name != motdFiles || entries[0].Err != nil {
		t.Errorf("%+v, %v", entries, err)
	}
}

func TestAForeignFileIsNotPruned(t *testing.T) {
	k := newLocker(t)
	plantForeign(t, k)
	if names, err := k.Prune(0); err != nil || len(names) != 0 {
		t.Errorf("pruned %v, %v", names, err)
	}
	for _, file := range foreign {
		if _, err := os.Stat(k.Dir.Path(file)); err != nil {
			t.Error(err)
		}
	}
}

// A file that only begins with adlock's words is no lock of the owner: it must not prevent the
// release of a slot or an atom.
func TestAForeignFileDoesNotStandInTheWayOfARelease(t *testing.T) {
	k, r := newLocker(t), ask(sleeper(t))
	r.Slots = 1
	held := wantVerdict(t, k, r, locker.Acquired)
	must(t, os.Mkdir(k.Dir.Path("lock."+r.Atom.Name().Prefix()+"notes"), 0o700))
	letGo(t, k, r, held)
	if left := slotsLeft(k); left != 0 {
		t.Errorf("%d slots are left", left)
	}
}

func TestAnAtomIsListedOnceThoughItHasTwoLocksAndASlot(t *testing.T) {
	k, r := newLocker(t), ask(sleeper(t))
	r.Slots = 1
	wantVerdict(t, k, r, locker.Acquired)
	other := r
	other.Atom, other.Slots = atom.Atom{Program: "a", Host: "dax", Operator: "o", Operand: "x"}, 0
	letGo(t, k, other, wantVerdict(t, k, other, locker.Acquired))
	entries, err := k.List()
	if err != nil || len(entries) != 2 || entries[0].Name != "a.dax.o.x" || entries[1].Name != motdFiles {
		t.Errorf("%+v, %v", entries, err)
	}
}
