package atom

import (
	"errors"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"adlock/lib/lock"
	"adlock/lib/process"
)

// slotted asks for an atom of its own under the limit.
func slotted(owner process.Identity, operand string, slots int) Request {
	r := ask(owner)
	r.Atom.Operand, r.Slots = operand, slots
	return r
}

func letGo(t *testing.T, k *Keeper, r Request, o Outcome) {
	t.Helper()
	if err := k.Release(Return{Files: r.Atom.Name(), Token: o.Token}); err != nil {
		t.Fatal(err)
	}
}

func slotsLeft(k *Keeper) int {
	names, _ := k.Dir.Names(lock.ActivePrefix + "cfengine_conf.dax.slot-")
	return len(names)
}

// Whichever of two nested atoms goes first, and however they share the slot, it
// is taken until the other has gone too.
func TestASharedSlotIsGivenBackWithTheLastAtomThatSharesIt(t *testing.T) {
	for _, shared := range []bool{false, true} {
		for first := range 2 {
			t.Run("readers "+strconv.FormatBool(shared)+", first "+strconv.Itoa(first), func(t *testing.T) {
				k, owner := newKeeper(t), sleeper(t)
				stranger := slotted(sleeper(t), "other", 1)
				nested := []Request{slotted(owner, "outer", 1), slotted(owner, "inner", 1)}
				var held []Outcome
				for i := range nested {
					nested[i].Shared = shared
					held = append(held, wantVerdict(t, k, nested[i], Acquired))
				}
				letGo(t, k, nested[first], held[first])
				wantVerdict(t, k, stranger, Full)
				letGo(t, k, nested[1-first], held[1-first])
				if n := slotsLeft(k); n != 0 {
					t.Fatalf("%d slots are left", n)
				}
				wantVerdict(t, k, stranger, Acquired)
			})
		}
	}
}

// Atoms that one owner takes under different limits hold no slot longer than
// one of them that may use it.
func TestSlotsTakenUnderDifferentLimitsAreAllGivenBack(t *testing.T) {
	for first := range 2 {
		k, owner := newKeeper(t), sleeper(t)
		other := slotted(sleeper(t), "other", 1)
		blocker := wantVerdict(t, k, other, Acquired)
		nested := []Request{slotted(owner, "outer", 2), slotted(owner, "inner", 3)}
		held := []Outcome{wantVerdict(t, k, nested[0], Acquired), wantVerdict(t, k, nested[1], Acquired)}
		letGo(t, k, other, blocker)
		nested = append(nested, slotted(owner, "third", 1))
		held = append(held, wantVerdict(t, k, nested[2], Acquired))
		for _, i := range []int{first, 1 - first, 2} {
			if slotsLeft(k) == 0 {
				t.Fatal("an atom runs without a slot")
			}
			letGo(t, k, nested[i], held[i])
		}
		if n := slotsLeft(k); n != 0 {
			t.Fatalf("%d slots are left", n)
		}
	}
}

func TestAnAtomWithoutALimitKeepsNoSlot(t *testing.T) {
	k, owner := newKeeper(t), sleeper(t)
	limited := slotted(owner, "outer", 1)
	held := wantVerdict(t, k, limited, Acquired)
	wantVerdict(t, k, slotted(owner, "inner", 0), Acquired)
	letGo(t, k, limited, held)
	wantVerdict(t, k, slotted(sleeper(t), "other", 1), Acquired)
}

// A slot is kept for an atom that was about to be taken and then was not: with
// that it is given back.
func TestAnAtomThatIsNotTakenAfterAllKeepsNoSlot(t *testing.T) {
	k, owner := newKeeper(t), sleeper(t)
	outer, inner := slotted(owner, "outer", 1), slotted(owner, "inner", 1)
	held := wantVerdict(t, k, outer, Acquired)
	draft, record, err := k.draft(&inner)
	if err != nil {
		t.Fatal(err)
	}
	defer draft.Close()
	if err := draft.Link(lock.ActivePrefix + inner.Atom.Name()); err != nil {
		t.Fatal(err)
	}
	letGo(t, k, outer, held)
	wantVerdict(t, k, slotted(sleeper(t), "other", 1), Full)
	if err := k.withdraw(draft, record); err != nil {
		t.Fatal(err)
	}
	wantVerdict(t, k, slotted(sleeper(t), "other", 1), Acquired)
}

// Two helpers of an owner may run at the same time, as one was called from a trap.
func TestASharedSlotOutlivesGetsAndReleasesAtOnce(t *testing.T) {
	k, owner := newKeeper(t), sleeper(t)
	var done sync.WaitGroup
	for i := range 2 {
		done.Go(func() {
			r := slotted(owner, "atom"+strconv.Itoa(i), 1)
			for range 50 {
				outcome, err := k.Take(r)
				if err != nil || outcome.Verdict != Acquired {
					t.Errorf("%s: %v", outcome.Verdict, err)
					return
				}
				if slotsLeft(k) != 1 {
					t.Error("an atom runs without a slot")
				}
				if err := k.Release(Return{Files: r.Atom.Name(), Token: outcome.Token}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done.Wait()
	if n := slotsLeft(k); n != 0 {
		t.Errorf("%d slots are left", n)
	}
}

// Two come to clear what a dead reader left: the slot that one of them is about
// to give back has another's guard, and then another owner, or is gone.
func TestADeadReadersSlotMayBeClearedByTwoAtOnce(t *testing.T) {
	for _, gone := range []bool{false, true} {
		k := newKeeper(t)
		reader := slotted(dead(t), motd.Operand, 1)
		reader.Shared = true
		wantVerdict(t, k, reader, Acquired)
		slot, err := k.Dir.Active(motd.Slot(1))
		if err == nil {
			err = slot.Guard(0)
		}
		if err != nil {
			t.Fatal(err)
		}
		failed := make(chan error)
		go func() {
			_, err := k.Take(ask(reader.Owner))
			failed <- err
		}()
		time.Sleep(guardWait / 10) // where it is not at the slot by now it meets another order of the two
		other, _, err := k.draft(&reader)
		if err != nil {
			t.Fatal(err)
		}
		if gone {
			err = slot.Remove()
		} else {
			err = other.Replace(lock.ActivePrefix + motd.Slot(1))
		}
		if err != nil {
			t.Fatal(err)
		}
		slot.Close()
		other.Close()
		if err := <-failed; err != nil {
			t.Errorf("the slot's other owner is told as an error: %v", err)
		}
	}
}

// One that is stopped while it clears the slot holds nobody up: the slot is a
// dead owner's, and the next newcomer's.
func TestADeadReaderIsClearedThoughItsSlotIsGuarded(t *testing.T) {
	k := newKeeper(t)
	reader := slotted(dead(t), motd.Operand, 1)
	reader.Shared = true
	wantVerdict(t, k, reader, Acquired)
	slot, err := k.Dir.Active(motd.Slot(1))
	if err == nil {
		err = slot.Guard(0)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer slot.Close()
	wantVerdict(t, k, ask(sleeper(t)), Acquired)
}

func TestASlotThatIsGuardedForTooLongIsNamedAtTheRelease(t *testing.T) {
	k := newKeeper(t)
	r := slotted(sleeper(t), "outer", 1)
	held := wantVerdict(t, k, r, Acquired)
	slot, err := k.Dir.Active(r.Atom.Slot(1))
	if err == nil {
		err = slot.Guard(0)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer slot.Close()
	err = k.Release(Return{Files: r.Atom.Name(), Token: held.Token})
	if !errors.Is(err, lock.ErrGuarded) || err.Error() != slot.Path()+": "+lock.ErrGuarded.Error() {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(k.Dir.Path(lock.ActivePrefix + r.Atom.Name())); err == nil {
		t.Error("the atom is still held")
	}
}
