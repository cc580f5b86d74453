package lockdir

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/test/support/actor"
	"adlock/test/support/helper"
	"adlock/test/support/intercept"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// standsAt makes a stopped process hold the guard of a lock, like a helper that was stopped while it looked.
func standsAt(t *testing.T, k *Locker, name atom.Name) (holder process.Identity) {
	t.Helper()
	holder = holds(t, k, name)
	stop(t, holder)
	return holder
}

// holds makes a process hold the guard of a lock.
func holds(t *testing.T, k *Locker, name atom.Name) (holder process.Identity) {
	t.Helper()
	return guards(t, openActive(t, k.Dir.Active, name))
}

func guards(t *testing.T, lock *lockfile.Active) (holder process.Identity) {
	t.Helper()
	need.Tools(t, "flock")
	holder = start(t, "exec flock -o '"+lock.Path()+"' sleep 60")
	eventually(t, "the guard is held", func() bool { return lock.GuardHolder() == holder.PID })
	return holder
}

func stop(t *testing.T, id process.Identity) {
	t.Helper()
	must.Do(t, syscall.Kill(id.PID, syscall.SIGSTOP))
	eventually(t, "it stands still", func() bool { still, _ := process.Still(id.PID); return still })
}

// withoutGrace lets a stopped holder be reported at once, without the time that an ending may take.
func withoutGrace(t *testing.T) { withGrace(t, 0) }

func withGrace(t *testing.T, grace time.Duration) {
	before := lockfile.GuardGrace
	lockfile.GuardGrace = grace
	t.Cleanup(func() { lockfile.GuardGrace = before })
}

func locksOf(t *testing.T, k *Locker) (names []string) {
	t.Helper()
	files := must.Get(k.Dir.Files(atom.ActiveLock, atom.ReaderLock))(t)
	for _, f := range files {
		names = append(names, f.String())
	}
	slices.Sort(names)
	return names
}

// A nested atom is denied while another process looks at its owner's slot.
func TestAGuardedSlotDoesNotTurnADenialIntoAnError(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	wantVerdict(t, k, slotted(owner, "outer", 1), locker.Acquired)
	wantVerdict(t, k, sharing(slotted(sleeper(t), "inner", 0)), locker.Acquired)
	before := locksOf(t, k)
	defer takeGuard(t, k, motd.Slot(1)).Close()
	wantVerdict(t, k, slotted(owner, "inner", 1), locker.Busy)
	wantSame(t, k, before)
}

// wantSame wants the locks that there were before, and no others.
func wantSame(t *testing.T, k *Locker, before []string) {
	t.Helper()
	if after := locksOf(t, k); !slices.Equal(after, before) {
		t.Errorf("left are %v; before there were %v", after, before)
	}
}

// A slot that no lock of its living owner uses is free. A killed release leaves such a slot too.
func TestAReleaseLeavesAGuardedSlotWhichIsFreeAfterwards(t *testing.T) {
	withoutGrace(t)
	k, owner := newLocker(t), sleeper(t)
	outer, inner, stranger := slotted(owner, "outer", 1), slotted(owner, "inner", 1), slotted(sleeper(t), "other", 1)
	held := wantVerdict(t, k, outer, locker.Acquired)
	nested := wantVerdict(t, k, inner, locker.Acquired)
	letGo(t, k, outer, held)
	stranger.Pause = 0
	wantVerdict(t, k, stranger, locker.Full)
	holder := standsAt(t, k, motd.Slot(1))
	must.Do(t, k.Release(locker.ReleaseRequest{Name: inner.Atom.Name(), Token: nested.Token}))
	wantLocks(t, k, 0)
	wantStuck(t, k, stranger, holder)
	end(t, holder)
	if granted, reason, err := inWords(k.DryRun(&stranger)); !granted {
		t.Errorf("a dry run says %s, %v", reason, err)
	}
	wantVerdict(t, k, stranger, locker.Acquired)
	wantVerdict(t, k, outer, locker.Full)
}

// A lock may be unreadable for a moment, as when too many files are open: at the first check, and at the one
// under the guard.
func TestASlotWhoseOwnersLockCannotBeReadIsNotFree(t *testing.T) {
	owner, stranger := sleeper(t), slotted(sleeper(t), "other", 1)
	for first := 1; first < 20; first++ {
		for second := first + 1; second <= 20; second++ {
			k := unlogged(t)
			wantVerdict(t, k, slotted(owner, "outer", 1), locker.Acquired)
			var outcome locker.Outcome
			var err error
			n := 0
			watched(t, k, unix.SYS_OPENAT, func() { outcome, err = k.Take(stranger) }, func() unix.Errno {
				if n++; n == first || n == second {
					return unix.EMFILE
				}
				return 0
			})
			if err == nil && outcome.Verdict != locker.Full {
				t.Errorf("at %d and %d: %s", first, second, outcome.Verdict)
			}
		}
	}
}

// A member that a failed ending has recorded keeps the slot, even if the lock beside it was cleared.
func TestASlotThatRecordsASurvivorIsNotFree(t *testing.T) {
	k, survivor, stranger := newLocker(t), sleeper(t), slotted(sleeper(t), "other", 1)
	held := wantVerdict(t, k, slotted(sleeper(t), motd.Operand, 1), locker.Acquired)
	must.Do(t, k.RecordMembers(motdFiles, held.Token, []process.Identity{survivor}))
	must.Do(t, os.Remove(k.Dir.Path(motdLock.String())))
	wantVerdict(t, k, stranger, locker.Full)
	end(t, survivor)
	wantVerdict(t, k, stranger, locker.Acquired)
}

// A process was stopped while it looked at a slot that the newcomer could take: the slot of a dead
// owner or, if the newcomer's atom is nested, the slot of its own owner.
func TestASlotGuardedByAStoppedProcessIsStuckAfterTheGrace(t *testing.T) {
	for _, nested := range []bool{false, true} {
		k, owner, newcomer := newLocker(t), dead(t), slotted(sleeper(t), "other", 1)
		newcomer.Pause = 0
		if nested {
			owner = newcomer.Owner
		}
		wantVerdict(t, k, slotted(owner, "outer", 1), locker.Acquired)
		before := locksOf(t, k)
		holder := standsAt(t, k, motd.Slot(1))
		wantVerdict(t, k, newcomer, locker.Full)
		if !nested {
			third := slotted(newcomer.Owner, "third", 2)
			letGo(t, k, third, wantVerdict(t, k, third, locker.Acquired))
		}
		withoutGrace(t)
		wantStuck(t, k, newcomer, holder)
		wantSame(t, k, before)
		if !nested { // a living owner releases its slot by itself
			wantVerdict(t, k, slotted(sleeper(t), "second", 2), locker.Acquired)
			newcomer.Slots = 2
			wantVerdict(t, k, newcomer, locker.Full)
		}
		lockfile.GuardGrace = time.Minute
	}
}

// wantStuck wants the error that says how the holder of a guard can go on.
func wantStuck(t *testing.T, k *Locker, r locker.Request, holder process.Identity) {
	t.Helper()
	outcome, err := k.Take(r)
	if outcome.Verdict != locker.Stuck || fault.KindOf(err) != fault.NotPermitted ||
		!strings.Contains(err.Error(), "kill -CONT "+strconv.Itoa(holder.PID)) {
		t.Errorf("%s, %v; want stuck, and how to go on", outcome.Verdict, err)
	}
}

// A newcomer that is denied as full looks at a living owner's slot without its guard: the owner may be releasing it.
func TestAGuardedSlotOfALivingOwnerCountsAsTaken(t *testing.T) {
	k := newLocker(t)
	wantVerdict(t, k, slotted(sleeper(t), "outer", 1), locker.Acquired)
	standsAt(t, k, motd.Slot(1))
	withoutGrace(t)
	wantVerdict(t, k, slotted(sleeper(t), "other", 1), locker.Full)
}

// The command holds the atom from now on, even if another process guards the slot. The lock's guard
// is free while the owner waits for the slot.
func TestACommandIsRecordedInItsLockWhileTheSlotIsGuarded(t *testing.T) {
	k, command := newLocker(t), sleeper(t)
	held := wantVerdict(t, k, slotted(sleeper(t), motd.Operand, 1), locker.Acquired)
	defer takeGuard(t, k, motd.Slot(1)).Close()
	recorded := make(chan error)
	go func() { recorded <- k.RecordCommand(motdFiles, held.Token, command) }()
	eventually(t, "the lock has the command", func() bool { return lockOf(t, k).Appended.Command.Same(command) })
	lock := lockOf(t, k)
	must.Do(t, lock.Guard(guardWait/2))
	lock.Close()
	if err := <-recorded; !errors.Is(err, locker.ErrGuarded) {
		t.Errorf("got %v", err)
	}
}

func TestAGuardedSlotStopsClearUnlessTheOwnerIsDead(t *testing.T) {
	k, r := newLocker(t), slotted(dead(t), motd.Operand, 1)
	r.Owner.Machine, r.Owner.Boot = "another", "another"
	wantVerdict(t, k, r, locker.Acquired)
	before := locksOf(t, k)
	guard := takeGuard(t, k, motd.Slot(1))
	if err := k.Clear(motdLock); fault.KindOf(err) != fault.Denied {
		t.Errorf("got %v", err)
	}
	wantSame(t, k, before)
	guard.Close()
	must.Do(t, k.Clear(motdLock))
	wantSame(t, k, nil)
	wantVerdict(t, k, slotted(dead(t), motd.Operand, 1), locker.Acquired)
	defer takeGuard(t, k, motd.Slot(1)).Close()
	must.Do(t, k.Clear(motdLock)) // the next newcomer clears the slot
}

// A reader whose helper died between its two locks releases both, or can try again.
func TestAReadersReleaseIsDeniedWhileItsOtherLockIsGuarded(t *testing.T) {
	k, r := newLocker(t), read(sleeper(t))
	held := wantVerdict(t, k, r, locker.Acquired)
	lock := readerLock(r.Owner)
	plant(t, k, contentOf(t, k, lock.String()), 0)
	reader := openActive(t, k.Dir.Lock, lock)
	must.Do(t, reader.Guard(0))
	err := releaseOf(k, held)
	if fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), reader.Path()+": "+locker.ErrGuarded.Error()) {
		t.Errorf("got %v, of kind %v", err, fault.KindOf(err))
	}
	wantLocks(t, k, 2)
	reader.Close()
	release(t, k, held)
	wantLocks(t, k, 0)
}

// A newcomer that ends an owner ends the job of all its atoms. A survivor holds each of them, and
// their slots, even if the newcomer was killed meanwhile.
func TestASurvivorOfAnEndingHoldsAllAtomsOfItsOwner(t *testing.T) {
	for _, shared := range []bool{false, true} {
		k, owner, survivor := newLocker(t), sleeper(t), sleeper(t)
		outer, inner := slotted(owner, "outer", 2), slotted(owner, "inner", 0)
		outer.Shared = shared
		for _, r := range []locker.Request{slotted(sleeper(t), "first", 1), outer, inner} {
			wantVerdict(t, k, r, locker.Acquired)
		}
		ended := takeGuard(t, k, inner.Atom.Name())
		must.Do(t, (&ending{Locker: k, active: ended}).record([]process.Identity{owner, survivor}))
		ended.Close()
		end(t, owner)
		newcomer := sleeper(t)
		wantVerdict(t, k, slotted(newcomer, "outer", 2), locker.Busy)
		wantVerdict(t, k, slotted(newcomer, "inner", 2), locker.Busy)
		wantVerdict(t, k, slotted(newcomer, "other", 2), locker.Full)
		end(t, survivor)
		wantVerdict(t, k, slotted(newcomer, "other", 2), locker.Acquired)
		wantVerdict(t, k, slotted(newcomer, "outer", 2), locker.Acquired)
	}
}

// outliving is an owner with a survivor of KILL: process 1 of a pid namespace does not die while
// a process outside keeps a zombie in it.
func outliving(t *testing.T) (owner process.Identity) {
	t.Helper()
	need.Namespaces(t, "--pid", "--fork")
	need.Tools(t, "nsenter", "setsid")
	owner = start(t, "trap : INT TERM; setsid unshare --pid --fork sleep 60 & wait; wait; wait; exec sleep 60")
	first := descendant(t, descendant(t, owner.PID))
	keeper := start(t, "exec nsenter --target "+strconv.Itoa(first)+" --pid sleep 60")
	descendant(t, keeper.PID)
	must.Do(t, syscall.Kill(keeper.PID, syscall.SIGSTOP))
	helper.Eventually(t, "it is stopped", func() bool { return actor.State(keeper.PID) == "T" })
	return owner
}

// An owner that does not end at once may take another atom meanwhile: the survivor holds that atom
// too, even if no new member was found since. If the survivor cannot be recorded there, that is
// reported, and the ending is stuck all the same.
func TestASurvivorHoldsAnAtomTakenDuringTheEnding(t *testing.T) {
	for _, guarded := range []bool{false, true} {
		k, owner := newLocker(t), outliving(t)
		outer, inner := slotted(owner, "outer", 0), slotted(owner, "inner", 0)
		wantVerdict(t, k, outer, locker.Acquired)
		newcomer := slotted(sleeper(t), "outer", 0)
		newcomer.Limits.ExpireAfter = 0
		var outcome locker.Outcome
		var guard *lockfile.Active
		begun := false
		said := helper.Stderr(t, func() {
			intercept.Run(t, func() { outcome, _ = k.Take(newcomer) }, func(c intercept.Call) unix.Errno {
				if probes := c.FD(1) == 0; probes || begun {
					return 0
				}
				begun = openActive(t, k.Dir.Active, outer.Atom.Name()).Job().EndingBegan()
				wantVerdict(t, k, inner, locker.Acquired)
				if guarded {
					guard = takeGuard(t, k, inner.Atom.Name())
				}
				return 0
			}, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_KILL)
		})
		if !begun || outcome.Verdict != locker.Stuck || owner.Life() != process.Dead {
			t.Fatalf("begun %v: %s, and the owner is %v; want it stuck", begun, outcome.Verdict, owner.Life())
		}
		if guarded {
			guard.Close()
		}
		unwritten := k.Dir.Path(inner.Atom.Name().ActiveLock()) + ": " + locker.ErrGuarded.Error()
		if strings.Contains(said, unwritten) != guarded {
			t.Errorf("guarded %v: it says %q", guarded, said)
		}
		if !guarded {
			wantVerdict(t, k, slotted(newcomer.Owner, "inner", 0), locker.Busy)
		}
	}
}

// descendant returns the child of a process, once it has one.
func descendant(t *testing.T, pid int) (child int) {
	t.Helper()
	eventually(t, "it has a child", func() bool {
		children := process.Children(pid)
		if len(children) == 1 {
			child = children[0]
		}
		return child != 0
	})
	return child
}

// No member is signalled before it is recorded in each lock and slot of the owner and of the other
// members: if that fails at one of them, nothing is written that would look like an ending.
func TestAnOwnerIsNotSignalledWhileALockOfItsJobIsGuarded(t *testing.T) {
	for claim, c := range map[string]struct {
		shared  bool
		guarded func(n nested) locker.Request // an atom beside motd; a zero one: motd's slot is guarded
	}{
		"its slot":          {false, func(nested) locker.Request { return locker.Request{} }},
		"a reader's slot":   {true, func(nested) locker.Request { return locker.Request{} }},
		"its other lock":    {false, func(n nested) locker.Request { return slotted(n.owner, "other", 0) }},
		"a member's lock":   {false, func(n nested) locker.Request { return slotted(n.left, "other", 0) }},
		"an earlier lock":   {false, func(n nested) locker.Request { return slotted(n.owner, "a", 0) }},
		"a reader's member": {true, func(n nested) locker.Request { return slotted(n.left, "other", 0) }},
	} {
		k, n, newcomer := newLocker(t), newNested(t), hasty(sleeper(t))
		holder, guarded := slotted(n.owner, motd.Operand, 1), motd.Slot(1)
		holder.Shared = c.shared
		held := wantVerdict(t, k, holder, locker.Acquired)
		if r := c.guarded(n); r.Atom != (atom.Atom{}) {
			wantVerdict(t, k, r, locker.Acquired)
			guarded = r.Atom.Name()
		}
		before := locksOf(t, k)
		guard := takeGuard(t, k, guarded)
		outcome := wantVerdict(t, k, newcomer, locker.Busy)
		if outcome.Reason != "busy: "+locker.ErrGuarded.Error() {
			t.Errorf("%s: %s", claim, outcome.Reason)
		}
		if err := k.RecordMembers(motdFiles, held.Token, n.members()); !errors.Is(err, locker.ErrGuarded) {
			t.Errorf("%s: its supervisor: %v", claim, err)
		}
		lock := motdLock
		if c.shared {
			lock = readerLock(n.owner)
		} else if err := endOwner(k, motdFiles, 0); fault.KindOf(err) != fault.Denied {
			t.Errorf("%s: to end it: %v; want a denial", claim, err)
		}
		for _, file := range []atom.File{lock, {Kind: atom.ActiveLock, Name: motd.Slot(1)}} {
			if openActive(t, k.Dir.Lock, file).Job().EndingBegan() || n.owner.Life() != process.Alive {
				t.Errorf("%s: its ending seems to have begun in %s", claim, file)
			}
		}
		wantSame(t, k, before)
		guard.Close()
		wantVerdict(t, k, newcomer, locker.Acquired)
	}
}

func TestAnEndingIsStuckIfAStoppedProcessGuardsTheSlot(t *testing.T) {
	k, newcomer := newLocker(t), hasty(sleeper(t))
	wantVerdict(t, k, slotted(sleeper(t), motd.Operand, 1), locker.Acquired)
	holder := standsAt(t, k, motd.Slot(1))
	withoutGrace(t)
	newcomer.Pause = 0
	wantStuck(t, k, newcomer, holder)
}

// Two newcomers end one owner at the same time, each through another of its atoms, and each needs the guard
// that the other holds. One of them gives up sooner (lib/lockdir/lockfile), and the other goes on.
func TestTwoEndingsThroughTwoLocksDoNotDeadlock(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	newcomer := func(operand string) (end func() (locker.Verdict, error), path string) {
		wantVerdict(t, k, slotted(owner, operand, 1), locker.Acquired)
		r := hasty(sleeper(t))
		r.Atom.Operand = operand
		return verdictOf(k, r), k.Dir.Path(r.Atom.Name().ActiveLock())
	}
	inner, innerPath := newcomer("inner")
	outer, outerPath := newcomer("outer")
	waits, gaveUp, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var first, second locker.Verdict
	var err, failed error
	atTry(t, innerPath, 1, func() { first, err = outer(); close(gaveUp) }, func() {
		go func() {
			defer close(done)
			atTry(t, outerPath, 2, func() { second, failed = inner() }, func() { close(waits); <-gaveUp })
		}()
		select {
		case <-waits:
		case <-done:
		}
	})
	<-done
	if first != locker.Busy || second != locker.Acquired || err != nil || failed != nil {
		t.Errorf("at the outer %q, %v; at the inner %q, %v", first, err, second, failed)
	}
}

// What the job starts during an ending is recorded once the slot's guard is free. Its holder may be
// a helper of the owner that CONT has just resumed.
func TestAnEndingWaitsForTheGuardOfASlot(t *testing.T) {
	k, over := newLocker(t), filepath.Join(t.TempDir(), "over")
	owner := start(t, "trap : INT TERM; until [ -e '"+over+"' ]; do sleep 0.02; done")
	descendant(t, owner.PID) // else it may be ended before it has set its trap
	wantVerdict(t, k, slotted(owner, motd.Operand, 1), locker.Acquired)
	newcomer := hasty(sleeper(t))
	newcomer.Pause = time.Minute
	took := takes(t, k, newcomer)
	eventually(t, "members are recorded in the slot", func() bool {
		return openActive(t, k.Dir.Active, motd.Slot(1)).Job().EndingBegan()
	})
	guard := takeGuard(t, k, motd.Slot(1))
	time.Sleep(2 * guardWait)
	guard.Close()
	must.Do(t, os.WriteFile(over, nil, 0o600))
	wantTaken(t, took, locker.Acquired)
}

// A guarded slot of the owner is a failure only if a process has to wait for it. A file beside it
// that cannot be read or removed always is.
func TestAFailureBesideAGuardedSlotIsReported(t *testing.T) {
	for claim, prepare := range map[string]func(k *Locker, owner process.Identity) (asks locker.Request){
		"denied": func(k *Locker, owner process.Identity) locker.Request {
			wantVerdict(t, k, sharing(slotted(sleeper(t), "inner", 0)), locker.Acquired)
			return slotted(owner, "inner", 2)
		},
		"nested": func(_ *Locker, owner process.Identity) locker.Request { return slotted(owner, "inner", 2) },
		"released for a dead owner": func(k *Locker, owner process.Identity) locker.Request {
			wantVerdict(t, k, sharing(slotted(owner, "inner", 2)), locker.Acquired)
			end(t, owner)
			return slotted(sleeper(t), "inner", 0)
		},
	} {
		for _, call := range []string{"openat", "unlinkat"} {
			for n, met := 1, true; met; n++ {
				k, owner := newLocker(t), sleeper(t)
				k.Log = nil
				wantVerdict(t, k, slotted(owner, "outer", 1), locker.Acquired)
				r := prepare(k, owner)
				plantFile(t, k, motd.Slot(2).ActiveLock(), contentOf(t, k, motd.Slot(1).ActiveLock()), 0)
				guard := takeGuard(t, k, motd.Slot(1))
				var err error
				met, err = failing(t, k, reaching[call], n, func() error { _, err := k.Take(r); return err })
				if told := fault.KindOf(err) == fault.IO; told != met {
					t.Errorf("%s, %s %d: %v", claim, call, n, err)
				}
				guard.Close()
			}
		}
	}
}

// A newcomer that was stopped while it held the guard would block all others for ever, without a report.
func TestAStoppedHolderOfAGuardIsStuckAfterTheGraceTime(t *testing.T) {
	k, owner, newcomer := newLocker(t), sleeper(t), ask(sleeper(t))
	wantVerdict(t, k, ask(owner), locker.Acquired)
	newcomer.Limits.ExpireAfter, newcomer.Pause = 1, 0
	holder := holds(t, k, motdFiles)
	withoutGrace(t)
	wantVerdict(t, k, newcomer, locker.Busy)
	stop(t, holder)
	wantStuck(t, k, newcomer, holder)
	withGrace(t, time.Hour)
	wantVerdict(t, k, newcomer, locker.Busy)
	syscall.Kill(-holder.PGID, syscall.SIGKILL)
	wantLife(t, owner, process.Alive)
	eventually(t, "the atom can be taken", func() bool {
		outcome, err := k.Take(newcomer)
		return err == nil && outcome.Verdict == locker.Acquired
	})
}
