package lockdir

import (
	"errors"
	"os"
	"slices"
	"testing"

	"adlock/lib/atom"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/test/support/must"
)

// slotted is a request for the atom of that operand, with a limit on slots (0: none).
func slotted(owner process.Identity, operand string, slots int) locker.Request {
	r := ask(owner)
	r.Atom.Operand, r.Slots = operand, slots
	return r
}

func slotsLeft(k *Locker) int {
	locks, _ := k.Dir.Files(atom.ActiveLock)
	return len(slices.DeleteFunc(locks, func(f atom.File) bool { return !f.Name.IsSlot() }))
}

func wantSlots(t *testing.T, k *Locker, want int) {
	t.Helper()
	if n := slotsLeft(k); n != want {
		t.Errorf("%d slots are taken, want %d", n, want)
	}
}

// Whichever of two nested atoms is released first, the slot that they share stays taken until the
// other atom is released.
func TestASharedSlotIsReleasedWithTheLastAtomThatSharesIt(t *testing.T) {
	for _, shared := range []bool{false, true} {
		for first := range 2 {
			k, owner := newLocker(t), sleeper(t)
			stranger := slotted(sleeper(t), "other", 1)
			nested, held := nest(t, k, shared, slotted(owner, "outer", 1), slotted(owner, "inner", 1))
			letGo(t, k, nested[first], held[first])
			wantVerdict(t, k, stranger, locker.Full)
			letGo(t, k, nested[1-first], held[1-first])
			if n := slotsLeft(k); n != 0 {
				t.Errorf("readers %v, first %d: %d slots are left", shared, first, n)
			}
			wantVerdict(t, k, stranger, locker.Acquired)
		}
	}
}

// nest takes these atoms, as a reader or not.
func nest(t *testing.T, k *Locker, shared bool, nested ...locker.Request) ([]locker.Request, []locker.Outcome) {
	t.Helper()
	var held []locker.Outcome
	for i := range nested {
		nested[i].Shared = shared
		held = append(held, wantVerdict(t, k, nested[i], locker.Acquired))
	}
	return nested, held
}

// If one owner takes atoms under different limits, a slot is held only while an atom that may use it is held.
func TestSlotsTakenUnderDifferentLimitsAreAllReleased(t *testing.T) {
	for first := range 2 {
		k, owner := newLocker(t), sleeper(t)
		other := slotted(sleeper(t), "other", 1)
		blocker := wantVerdict(t, k, other, locker.Acquired)
		nested, held := nest(t, k, false, slotted(owner, "outer", 2), slotted(owner, "inner", 3))
		letGo(t, k, other, blocker)
		third, last := nest(t, k, false, slotted(owner, "third", 1))
		nested, held = append(nested, third...), append(held, last...)
		for _, i := range []int{first, 1 - first, 2} {
			if slotsLeft(k) == 0 {
				t.Fatal("an atom runs without a slot")
			}
			letGo(t, k, nested[i], held[i])
		}
		wantSlots(t, k, 0)
	}
}

func TestTwoSemaphoresOfOneOwnerHaveSeparateSlots(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	run := func(owner process.Identity, name string) locker.Request {
		r := slotted(owner, name, 1)
		r.Atom, r.Shared = atom.Named(name, r.Atom.Host), true
		return r
	}
	one, other := run(owner, "one"), run(owner, "other")
	held := wantVerdict(t, k, one, locker.Acquired)
	wantVerdict(t, k, other, locker.Acquired)
	wantVerdict(t, k, run(sleeper(t), "one"), locker.Full)
	letGo(t, k, one, held)
	wantVerdict(t, k, run(sleeper(t), "other"), locker.Full)
	wantVerdict(t, k, run(sleeper(t), "one"), locker.Acquired)
}

// Each program has its own limits, though all locks are in one directory.
func TestAtomsWithoutALimitOrOfAnotherProgramKeepNoSlot(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	limited, elsewhere := slotted(owner, "outer", 1), slotted(owner, "outer", 1)
	elsewhere.Atom.Program = "another"
	held := wantVerdict(t, k, limited, locker.Acquired)
	wantVerdict(t, k, elsewhere, locker.Acquired)
	wantVerdict(t, k, slotted(owner, "inner", 0), locker.Acquired)
	letGo(t, k, limited, held)
	wantVerdict(t, k, slotted(sleeper(t), "other", 1), locker.Acquired)
}

// A guarded script and its supervisor are one run; an `adlock run` in it is another.
func TestAScriptsAtomsShareTheSlotOfItsSupervisor(t *testing.T) {
	k, script := newLocker(t), sleeper(t)
	supervisor := slotted(self(t), "guard", 2)
	supervisor.Supervised = true
	wantVerdict(t, k, slotted(sleeper(t), "first", 1), locker.Acquired)
	held := wantVerdict(t, k, supervisor, locker.Acquired)
	inner := slotted(script, "inner", 2)
	nested := wantVerdict(t, k, inner, locker.Acquired)
	run := slotted(script, "run", 2)
	run.Supervised = true
	wantVerdict(t, k, run, locker.Full)
	wantVerdict(t, k, slotted(script, "narrow", 1), locker.Full)
	wantSlots(t, k, 2)
	letGo(t, k, inner, nested)
	letGo(t, k, supervisor, held)
	wantSlots(t, k, 1)
	supervisor.Supervised = false
	wantVerdict(t, k, supervisor, locker.Acquired)
	wantVerdict(t, k, inner, locker.Full)

	k = newLocker(t)
	supervisor.Supervised = true
	supervisor.Slots, inner.Slots = 1, 1
	wantVerdict(t, k, supervisor, locker.Acquired)
	wantVerdict(t, k, inner, locker.Acquired)
}

// The slot stays for an atom that is being taken. If that is denied after all, the denial releases the slot.
func TestANewcomerThatWithdrawsReleasesItsSlot(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	outer, inner := slotted(owner, "outer", 1), slotted(owner, "inner", 1)
	held := wantVerdict(t, k, outer, locker.Acquired)
	temp, record, err := k.prepareLock(&inner, &view{})
	must.Do(t, err)
	defer temp.Close()
	must.Do(t, temp.Link(inner.Atom.Name().ActiveLock()))
	letGo(t, k, outer, held)
	wantVerdict(t, k, slotted(sleeper(t), "other", 1), locker.Full)
	must.Do(t, k.withdraw(temp, record))
	wantVerdict(t, k, slotted(sleeper(t), "other", 1), locker.Acquired)
}

// Two helpers of an owner may run at the same time, if one was called from a trap.
func TestANestedAtomHasASlotWhileTheOuterIsReleased(t *testing.T) {
	owner := sleeper(t)
	for _, takesFirst := range []bool{true, false} {
		atEach(t, anyStep, func(k *Locker) (func() (locker.Verdict, error), func() error) {
			outer, inner := slotted(owner, "outer", 1), slotted(owner, "inner", 1)
			held := wantVerdict(t, k, outer, locker.Acquired)
			token, runs := locker.ReleaseRequest{Name: outer.Atom.Name(), Token: held.Token}, false
			release := func() error { return ignoreGuarded(k.Release(token)) }
			take := func() error {
				outcome, err := k.Take(inner)
				runs = outcome.Verdict == locker.Acquired
				return err
			}
			first, second := take, release
			if !takesFirst {
				first, second = release, take
			}
			return func() (locker.Verdict, error) {
				err := first()
				if runs {
					wantSlots(t, k, 1)
				}
				return "", err
			}, second
		})
	}
}

// Two newcomers clear a dead reader's locks: one guards the slot that the other is about to
// release, and then takes or removes it.
func TestTwoNewcomersMayClearADeadReadersSlotAtOnce(t *testing.T) {
	for _, gone := range []bool{false, true} {
		k, reader := newLocker(t), sharing(slotted(dead(t), motd.Operand, 1))
		wantVerdict(t, k, reader, locker.Acquired)
		slot := takeGuard(t, k, motd.Slot(1))
		other, _, err := k.prepareLock(&reader, &view{})
		must.Do(t, err)
		var failed error
		met := false
		atTry(t, slot.Path(), 2, func() { _, err = k.Take(ask(reader.Owner)) }, func() {
			met = true
			if gone {
				failed = slot.Remove()
			} else {
				failed = other.Replace(motd.Slot(1).ActiveLock())
			}
			slot.Close()
		})
		other.Close()
		if err != nil || failed != nil || !met {
			t.Errorf("gone %v: it waited is %v; %v; the other: %v", gone, met, err, failed)
		}
	}
}

// A newcomer that is stopped while it clears the slot blocks no other newcomer: the slot's owner is
// dead, and the next newcomer takes the slot.
func TestADeadReaderIsClearedThoughItsSlotIsGuarded(t *testing.T) {
	k := newLocker(t)
	wantVerdict(t, k, sharing(slotted(dead(t), motd.Operand, 1)), locker.Acquired)
	defer takeGuard(t, k, motd.Slot(1)).Close()
	wantVerdict(t, k, ask(sleeper(t)), locker.Acquired)
}

func TestANestedAtomSharesItsOwnersSlotThoughAnotherIsFree(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	first := slotted(sleeper(t), "first", 2)
	held := wantVerdict(t, k, first, locker.Acquired)
	wantVerdict(t, k, slotted(owner, "outer", 2), locker.Acquired)
	letGo(t, k, first, held)
	wantVerdict(t, k, slotted(owner, "inner", 2), locker.Acquired)
	wantSlots(t, k, 1)
}

// A file that may not be read is no lock, and no reason to keep a slot.
func TestAnUnreadableFileKeepsNoSlot(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	must.Do(t, os.Mkdir(k.Dir.Path("lock."+motdFiles), 0o700))
	outer, stranger := slotted(owner, "outer", 1), slotted(sleeper(t), "other", 1)
	letGo(t, k, outer, wantVerdict(t, k, outer, locker.Acquired))
	wantSlots(t, k, 0)
	wantVerdict(t, k, outer, locker.Acquired)
	must.Do(t, os.Remove(k.Dir.Path(outer.Atom.Name().ActiveLock())))
	wantVerdict(t, k, stranger, locker.Acquired) // no lock of its owner uses the slot
}

func TestALimitCountsTheRunsWhateverTheirSlotNumbers(t *testing.T) {
	k, owner, third := newLocker(t), sleeper(t), sleeper(t)
	two := slotted(sleeper(t), "two", 3)
	one, held := nest(t, k, false, slotted(owner, "one", 3), two, slotted(third, "three", 3))
	letGo(t, k, one[0], held[0])
	letGo(t, k, two, held[1])
	for limit, want := range map[int]locker.Verdict{1: locker.Full, 2: locker.Acquired} {
		r := slotted(sleeper(t), "four", limit)
		if granted, reason, err := inWords(k.DryRun(&r)); granted != (want == locker.Acquired) || err != nil {
			t.Errorf("a dry run says %s (%v)", reason, err)
		}
		outcome := wantVerdict(t, k, r, want)
		if want != locker.Acquired {
			continue
		}
		wantSlots(t, k, 2)
		letGo(t, k, r, outcome)
	}
	wantVerdict(t, k, slotted(sleeper(t), "four", 2), locker.Acquired)
	end(t, third)
	wantVerdict(t, k, slotted(sleeper(t), "five", 2), locker.Acquired)
}

// The inner atom, taken in the slot of the outer one, keeps it whatever limit it names.
func TestANestedAtomKeepsTheSlotWhateverItsLimit(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	other := slotted(sleeper(t), "other", 2)
	held := wantVerdict(t, k, other, locker.Acquired)
	outer := slotted(owner, "outer", 2)
	token := wantVerdict(t, k, outer, locker.Acquired) // in slot 2
	letGo(t, k, other, held)
	inner := slotted(owner, "inner", 1)
	nested := wantVerdict(t, k, inner, locker.Acquired)
	letGo(t, k, outer, token)
	wantVerdict(t, k, slotted(sleeper(t), "third", 1), locker.Full)
	letGo(t, k, inner, nested)
	wantSlots(t, k, 0)
}

// A run is in slot 3. At each step of a newcomer another one comes.
func TestNewcomersWithDifferentLimitsNeverExceedThem(t *testing.T) {
	first, one, two := sleeper(t), sleeper(t), sleeper(t)
	for _, limits := range [][2]int{{2, 2}, {1, 2}, {3, 1}, {2, 3}} {
		atEach(t, anyStep, func(k *Locker) (func() (locker.Verdict, error), func() error) {
			before, held := nest(t, k, false, slotted(one, "a", 3), slotted(two, "b", 3), slotted(first, "first", 3))
			letGo(t, k, before[0], held[0])
			letGo(t, k, before[1], held[1])
			came := locker.Full
			return func() (locker.Verdict, error) {
					outcome, err := k.Take(slotted(one, "a", limits[0]))
					runs, cameIn := outcome.Verdict == locker.Acquired, came == locker.Acquired
					switch {
					case runs && (limits[0] < 2 || cameIn && max(limits[0], limits[1]) < 3):
						t.Errorf("limits %v: too many run", limits)
					case !runs && !cameIn && limits[0] > 1:
						t.Errorf("limits %v: neither runs (%s)", limits, outcome.Verdict)
					}
					return outcome.Verdict, err
				}, func() error {
					outcome, err := k.Take(slotted(two, "b", limits[1]))
					if came = outcome.Verdict; came == locker.Acquired && limits[1] < 2 {
						t.Errorf("limits %v: %d run", limits, slotsLeft(k))
					}
					return err
				}
		})
	}
}

// A newcomer counts while another one, in a higher slot, has not counted yet.
func TestANewcomerCountsSlotsOnlyAfterANewcomerInAHigherSlot(t *testing.T) {
	k, higher := newLocker(t), motd.Slot(2).ActiveLock()
	wantVerdict(t, k, slotted(sleeper(t), "higher", 1), locker.Acquired)
	must.Do(t, os.Rename(k.Dir.Path(motd.Slot(1).ActiveLock()), k.Dir.Path(higher)))
	guard := takeGuard(t, k, motd.Slot(2))
	took := takes(t, k, slotted(sleeper(t), "lower", 1))
	eventually(t, "it has a slot", func() bool { return slotsLeft(k) == 2 })
	must.Do(t, errors.Join(os.Remove(k.Dir.Path(higher)), guard.Close()))
	wantTaken(t, took, locker.Acquired)
}
