package lockdir

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// slotted asks for the atom of that operand, with a limit on slots (0: none).
func slotted(owner process.Identity, operand string, slots int) locker.Request {
	r := ask(owner)
	r.Atom.Operand, r.Slots = operand, slots
	return r
}

func letGo(t *testing.T, k *Locker, r locker.Request, o locker.Outcome) {
	t.Helper()
	if err := k.Release(locker.ReleaseRequest{Name: r.Atom.Name(), Token: o.Token}); err != nil {
		t.Fatal(err)
	}
}

func slotsLeft(k *Locker) int {
	locks, _ := k.Dir.Files(atom.ActiveLock)
	return len(slices.DeleteFunc(locks, func(f atom.File) bool { return !f.Name.IsSlot() }))
}

// Whichever of two nested atoms is released first, the slot that they share stays taken until the
// other atom is released.
func TestASharedSlotIsGivenBackWithTheLastAtomThatSharesIt(t *testing.T) {
	for _, shared := range []bool{false, true} {
		for first := range 2 {
			t.Run("readers "+strconv.FormatBool(shared)+", first "+strconv.Itoa(first), func(t *testing.T) {
				k, owner := newLocker(t), sleeper(t)
				stranger := slotted(sleeper(t), "other", 1)
				nested := []locker.Request{slotted(owner, "outer", 1), slotted(owner, "inner", 1)}
				var held []locker.Outcome
				for i := range nested {
					nested[i].Shared = shared
					held = append(held, wantVerdict(t, k, nested[i], locker.Acquired))
				}
				letGo(t, k, nested[first], held[first])
				wantVerdict(t, k, stranger, locker.Full)
				letGo(t, k, nested[1-first], held[1-first])
				if n := slotsLeft(k); n != 0 {
					t.Fatalf("%d slots are left", n)
				}
				wantVerdict(t, k, stranger, locker.Acquired)
			})
		}
	}
}

// If one owner takes atoms under different limits, a slot is held only while an atom that may use
// it is held.
func TestSlotsTakenUnderDifferentLimitsAreAllGivenBack(t *testing.T) {
	for first := range 2 {
		k, owner := newLocker(t), sleeper(t)
		other := slotted(sleeper(t), "other", 1)
		blocker := wantVerdict(t, k, other, locker.Acquired)
		nested := []locker.Request{slotted(owner, "outer", 2), slotted(owner, "inner", 3)}
		held := []locker.Outcome{wantVerdict(t, k, nested[0], locker.Acquired), wantVerdict(t, k, nested[1], locker.Acquired)}
		letGo(t, k, other, blocker)
		nested = append(nested, slotted(owner, "third", 1))
		held = append(held, wantVerdict(t, k, nested[2], locker.Acquired))
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

func TestTheSlotsOfTwoSemaphoresOfOneOwnerAreApart(t *testing.T) {
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

func TestAnAtomWithoutALimitKeepsNoSlot(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	limited := slotted(owner, "outer", 1)
	held := wantVerdict(t, k, limited, locker.Acquired)
	wantVerdict(t, k, slotted(owner, "inner", 0), locker.Acquired)
	letGo(t, k, limited, held)
	wantVerdict(t, k, slotted(sleeper(t), "other", 1), locker.Acquired)
}

// Each program has its own limits, though all locks are in one directory.
func TestALimitInAnotherProgramKeepsNoSlot(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	limited, elsewhere := slotted(owner, "outer", 1), slotted(owner, "outer", 1)
	elsewhere.Atom.Program = "another"
	held := wantVerdict(t, k, limited, locker.Acquired)
	wantVerdict(t, k, elsewhere, locker.Acquired)
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
	if n := slotsLeft(k); n != 2 {
		t.Errorf("%d slots are taken", n)
	}
	letGo(t, k, inner, nested)
	letGo(t, k, supervisor, held)
	if n := slotsLeft(k); n != 1 {
		t.Errorf("%d slots are left", n)
	}
	supervisor.Supervised = false
	wantVerdict(t, k, supervisor, locker.Acquired)
	wantVerdict(t, k, inner, locker.Full)

	k = newLocker(t)
	supervisor.Supervised = true
	supervisor.Slots, inner.Slots = 1, 1
	wantVerdict(t, k, supervisor, locker.Acquired)
	wantVerdict(t, k, inner, locker.Acquired)
}

// A slot is kept for an atom that was about to be taken and then was denied: the denial releases
// it.
func TestAnAtomThatIsNotTakenAfterAllKeepsNoSlot(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	outer, inner := slotted(owner, "outer", 1), slotted(owner, "inner", 1)
	held := wantVerdict(t, k, outer, locker.Acquired)
	temp, record, err := k.tempFile(&inner)
	if err != nil {
		t.Fatal(err)
	}
	defer temp.Close()
	if err := temp.Link(inner.Atom.Name().ActiveLock()); err != nil {
		t.Fatal(err)
	}
	letGo(t, k, outer, held)
	wantVerdict(t, k, slotted(sleeper(t), "other", 1), locker.Full)
	if err := k.withdraw(temp, record); err != nil {
		t.Fatal(err)
	}
	wantVerdict(t, k, slotted(sleeper(t), "other", 1), locker.Acquired)
}

// Two helpers of an owner may run at the same time, if one was called from a trap. On a busy machine one
// of them may have the slot's guard for longer than the other would wait for it.
func TestASharedSlotOutlivesConcurrentTakesAndReleases(t *testing.T) {
	defer func(wait time.Duration) { guardWait = wait }(guardWait)
	guardWait = helper.Patience
	k, owner := newLocker(t), sleeper(t)
	var done sync.WaitGroup
	for i := range 2 {
		done.Go(func() {
			r := slotted(owner, "atom"+strconv.Itoa(i), 1)
			for range 50 {
				outcome, err := k.Take(r)
				if err != nil || outcome.Verdict != locker.Acquired {
					t.Errorf("%s: %v", outcome.Verdict, err)
					return
				}
				if slotsLeft(k) != 1 {
					t.Error("an atom runs without a slot")
				}
				if err := k.Release(locker.ReleaseRequest{Name: r.Atom.Name(), Token: outcome.Token}); err != nil {
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

// Two newcomers clear a dead reader's locks: one guards the slot that the other is about to
// release, and then takes or removes it.
func TestADeadReadersSlotMayBeClearedByTwoAtOnce(t *testing.T) {
	for _, gone := range []bool{false, true} {
		k := newLocker(t)
		reader := slotted(dead(t), motd.Operand, 1)
		reader.Shared = true
		wantVerdict(t, k, reader, locker.Acquired)
		slot, err := k.Dir.Active(motd.Slot(1))
		if err == nil {
			err = slot.Guard(0)
		}
		if err != nil {
			t.Fatal(err)
		}
		other, _, err := k.tempFile(&reader)
		if err != nil {
			t.Fatal(err)
		}
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
	reader := slotted(dead(t), motd.Operand, 1)
	reader.Shared = true
	wantVerdict(t, k, reader, locker.Acquired)
	slot, err := k.Dir.Active(motd.Slot(1))
	if err == nil {
		err = slot.Guard(0)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer slot.Close()
	wantVerdict(t, k, ask(sleeper(t)), locker.Acquired)
}

func TestASlotThatIsGuardedForTooLongIsNamedAtTheRelease(t *testing.T) {
	k := newLocker(t)
	r := slotted(sleeper(t), "outer", 1)
	held := wantVerdict(t, k, r, locker.Acquired)
	slot, err := k.Dir.Active(r.Atom.Slot(1))
	if err == nil {
		err = slot.Guard(0)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer slot.Close()
	err = k.Release(locker.ReleaseRequest{Name: r.Atom.Name(), Token: held.Token})
	if !errors.Is(err, locker.ErrGuarded) || err.Error() != slot.Path()+": "+locker.ErrGuarded.Error() {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(k.Dir.Path(r.Atom.Name().ActiveLock())); err == nil {
		t.Error("the atom is still held")
	}
}

// No member is signalled before it is recorded, in the slot too: if that fails, nothing is
// written that would look like an ending.
func TestAnOwnerIsNotSignalledWhileItsSlotIsGuarded(t *testing.T) {
	need.Tools(t, "flock")
	k, owner := newLocker(t), sleeper(t)
	outer := slotted(owner, "outer", 1)
	wantVerdict(t, k, outer, locker.Acquired)
	path := k.Dir.Path(outer.Atom.Slot(1).ActiveLock())
	holder := start(t, "exec flock -o '"+path+"' sleep 60")
	slot := openActive(t, k.Dir.Active, outer.Atom.Slot(1))
	eventually(t, "the slot's guard is held", func() bool { return slot.GuardHolder() == holder.PID })
	newcomer := slotted(sleeper(t), "outer", 1)
	newcomer.Limits.ExpireAfter, newcomer.Pause = 0, 0

	outcome, err := k.Take(newcomer)
	if outcome.Verdict != locker.Busy || outcome.Reason != "busy: another process is changing the lock" || err != nil {
		t.Errorf("%s: %s, %v; want busy", outcome.Verdict, outcome.Reason, err)
	}
	if err := endOwner(k, outer.Atom.Name(), 0); fault.KindOf(err) != fault.Denied {
		t.Errorf("kill-carefully says %v; want a denial", err)
	}
	if lock := openActive(t, k.Dir.Active, outer.Atom.Name()); lock.Job().EndingBegan() {
		t.Error("its ending seems to have begun")
	}
	if owner.Life() != process.Alive {
		t.Fatal("it was ended")
	}

	defer func(grace time.Duration) { lockfile.GuardGrace = grace }(lockfile.GuardGrace)
	lockfile.GuardGrace = 0
	if err := syscall.Kill(holder.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the holder stands still", func() bool { still, _ := process.Still(holder.PID); return still })
	outcome, err = k.Take(newcomer)
	if outcome.Verdict != locker.Stuck || err == nil || !strings.Contains(err.Error(), path+": ") || !strings.Contains(err.Error(), "kill -CONT "+strconv.Itoa(holder.PID)) {
		t.Errorf("%s, %v; want stuck, and how to go on", outcome.Verdict, err)
	}

	if err := syscall.Kill(holder.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the slot's guard is free", func() bool { return slot.GuardHolder() == 0 })
	wantVerdict(t, k, newcomer, locker.Acquired)
}

func TestANestedAtomSharesItsOwnersSlotThoughAnotherIsFree(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	first := slotted(sleeper(t), "first", 2)
	held := wantVerdict(t, k, first, locker.Acquired)
	wantVerdict(t, k, slotted(owner, "outer", 2), locker.Acquired)
	letGo(t, k, first, held)
	wantVerdict(t, k, slotted(owner, "inner", 2), locker.Acquired)
	if n := slotsLeft(k); n != 1 {
		t.Errorf("it holds %d slots", n)
	}
}

// A file that may not be read is no lock, and no reason to keep a slot.
func TestAStrangeFileKeepsNoSlot(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	if err := os.Mkdir(k.Dir.Path("lock."+motdFiles), 0o700); err != nil {
		t.Fatal(err)
	}
	outer, stranger := slotted(owner, "outer", 1), slotted(sleeper(t), "other", 1)
	letGo(t, k, outer, wantVerdict(t, k, outer, locker.Acquired))
	if left := slotsLeft(k); left != 0 {
		t.Errorf("%d slots are left", left)
	}
	wantVerdict(t, k, outer, locker.Acquired)
	if err := os.Remove(k.Dir.Path(outer.Atom.Name().ActiveLock())); err != nil {
		t.Fatal(err)
	}
	wantVerdict(t, k, stranger, locker.Acquired) // no lock of its owner uses the slot
}

func TestWhatCountsIsHowManyRunWhateverTheirSlots(t *testing.T) {
	k, first, second, third := newLocker(t), sleeper(t), sleeper(t), sleeper(t)
	one := wantVerdict(t, k, slotted(first, "one", 3), locker.Acquired)
	two := wantVerdict(t, k, slotted(second, "two", 3), locker.Acquired)
	wantVerdict(t, k, slotted(third, "three", 3), locker.Acquired)
	letGo(t, k, slotted(first, "one", 3), one)
	letGo(t, k, slotted(second, "two", 3), two)
	for limit, want := range []locker.Verdict{1: locker.Full, 2: locker.Acquired} {
		if limit == 0 {
			continue
		}
		r := slotted(sleeper(t), "four", limit)
		if granted, reason, err := k.DryRun(&r); granted != (want == locker.Acquired) || err != nil {
			t.Errorf("a dry run says %s (%v)", reason, err)
		}
		wantVerdict(t, k, r, want)
	}
	if n := slotsLeft(k); n != 2 {
		t.Errorf("%d slots are taken", n)
	}
	end(t, third)
	wantVerdict(t, k, slotted(sleeper(t), "five", 2), locker.Acquired)
}

// The inner atom, taken in the slot of the outer one, keeps it whatever limit it names.
func TestANestedAtomKeepsTheSlotWhateverItsNumber(t *testing.T) {
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
	if n := slotsLeft(k); n != 0 {
		t.Errorf("%d slots are left", n)
	}
}

// A run is in slot 3. At each step of a newcomer another one comes.
func TestNewcomersWithDifferentLimitsNeverRunTooMany(t *testing.T) {
	first, one, two := sleeper(t), sleeper(t), sleeper(t)
	for _, limits := range [][2]int{{2, 2}, {1, 2}, {3, 1}, {2, 3}} {
		atEach(t, anyStep, func(k *Locker) (func() (locker.Verdict, error), func() error) {
			before := []locker.Outcome{wantVerdict(t, k, slotted(one, "a", 3), locker.Acquired), wantVerdict(t, k, slotted(two, "b", 3), locker.Acquired)}
			wantVerdict(t, k, slotted(first, "first", 3), locker.Acquired)
			letGo(t, k, slotted(one, "a", 3), before[0])
			letGo(t, k, slotted(two, "b", 3), before[1])
			came := locker.Full
			return func() (locker.Verdict, error) {
					outcome, err := k.Take(slotted(one, "a", limits[0]))
					switch {
					case outcome.Verdict == locker.Acquired && (limits[0] < 2 || came == locker.Acquired && max(limits[0], limits[1]) < 3):
						t.Errorf("limits %v: too many run", limits)
					case outcome.Verdict != locker.Acquired && came != locker.Acquired && limits[0] > 1:
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
func TestACountWaitsForTheNewcomerInAHigherSlot(t *testing.T) {
	k, higher := newLocker(t), sleeper(t)
	wantVerdict(t, k, slotted(higher, "higher", 1), locker.Acquired)
	if err := os.Rename(k.Dir.Path(motd.Slot(1).ActiveLock()), k.Dir.Path(motd.Slot(2).ActiveLock())); err != nil {
		t.Fatal(err)
	}
	guard := takeGuard(t, k, motd.Slot(2))
	taken := make(chan locker.Verdict)
	go func() {
		outcome, _ := k.Take(slotted(sleeper(t), "lower", 1))
		taken <- outcome.Verdict
	}()
	eventually(t, "it has a slot", func() bool { return slotsLeft(k) == 2 })
	if err := errors.Join(os.Remove(k.Dir.Path(motd.Slot(2).ActiveLock())), guard.Close()); err != nil {
		t.Fatal(err)
	}
	if verdict := <-taken; verdict != locker.Acquired {
		t.Error(verdict)
	}
}
