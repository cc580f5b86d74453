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
	"adlock/test/support/need"
)

// standsAt makes a stopped process hold the guard of a lock, like a helper that was stopped while
// it looked.
func standsAt(t *testing.T, k *Locker, name atom.Name) (holder process.Identity) {
	t.Helper()
	need.Tools(t, "flock")
	lock := openActive(t, k.Dir.Active, name)
	holder = start(t, "exec flock -o '"+lock.Path()+"' sleep 60")
	eventually(t, "the guard is held", func() bool { return lock.GuardHolder() == holder.PID })
	if err := syscall.Kill(holder.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the holder stands still", func() bool { still, _ := process.Still(holder.PID); return still })
	return holder
}

// withoutGrace reports a stopped holder at once, without the time that an ending may take.
func withoutGrace(t *testing.T) { withGrace(t, 0) }

func withGrace(t *testing.T, grace time.Duration) {
	before := lockfile.GuardGrace
	lockfile.GuardGrace = grace
	t.Cleanup(func() { lockfile.GuardGrace = before })
}

func locksOf(t *testing.T, k *Locker) (names []string) {
	t.Helper()
	files, err := k.Dir.Files(atom.ActiveLock, atom.ReaderLock)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		names = append(names, f.String())
	}
	slices.Sort(names)
	return names
}

// A nested atom is denied while another process looks at its owner's slot.
func TestADenialIsNoErrorThoughTheOwnersSlotIsGuarded(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	wantVerdict(t, k, slotted(owner, "outer", 1), locker.Acquired)
	reader := slotted(sleeper(t), "inner", 0)
	reader.Shared = true
	wantVerdict(t, k, reader, locker.Acquired)
	before := locksOf(t, k)
	guard := takeGuard(t, k, motd.Slot(1))
	defer guard.Close()
	wantVerdict(t, k, slotted(owner, "inner", 1), locker.Busy)
	if after := locksOf(t, k); !slices.Equal(after, before) {
		t.Errorf("left are %v; before there were %v", after, before)
	}
}

func TestAReleaseNamesTheHolderOfAGuardedSlot(t *testing.T) {
	for _, grace := range []bool{true, false} {
		k, r := newLocker(t), slotted(sleeper(t), "outer", 1)
		held := wantVerdict(t, k, r, locker.Acquired)
		want, kind := locker.ErrGuarded.Error(), fault.Denied
		holder := standsAt(t, k, motd.Slot(1))
		if !grace {
			withoutGrace(t)
			want, kind = "process "+strconv.Itoa(holder.PID)+", which is changing the lock, is stopped; to let it go on: kill -CONT "+strconv.Itoa(holder.PID), fault.NotPermitted
		}
		err := k.Release(locker.ReleaseRequest{Name: r.Atom.Name(), Token: held.Token})
		if fault.KindOf(err) != kind || err.Error() != k.Dir.Path(motd.Slot(1).ActiveLock())+": "+want {
			t.Errorf("got %v, of kind %v", err, fault.KindOf(err))
		}
	}
}

// A release that could not release the slot, or was killed before, leaves a slot that no atom of
// its living owner uses.
func TestASlotThatNoAtomOfItsLivingOwnerUsesIsFree(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	outer, inner, stranger := slotted(owner, "outer", 1), slotted(owner, "inner", 1), slotted(sleeper(t), "other", 1)
	held := wantVerdict(t, k, outer, locker.Acquired)
	nested := wantVerdict(t, k, inner, locker.Acquired)
	letGo(t, k, outer, held)
	wantVerdict(t, k, stranger, locker.Full)
	guard := takeGuard(t, k, motd.Slot(1))
	err := k.Release(locker.ReleaseRequest{Name: inner.Atom.Name(), Token: nested.Token})
	if !errors.Is(err, locker.ErrGuarded) {
		t.Errorf("got %v", err)
	}
	wantVerdict(t, k, stranger, locker.Full)
	guard.Close()
	if granted, reason, err := k.DryRun(&stranger); !granted {
		t.Errorf("a dry run says %s, %v", reason, err)
	}
	wantVerdict(t, k, stranger, locker.Acquired)
	wantVerdict(t, k, outer, locker.Full)
}

// A lock may be unreadable for a moment, as when no more files can be opened: at the first look,
// and again at the one under the guard.
func TestASlotWhoseOwnersLockCannotBeReadIsNotFree(t *testing.T) {
	owner, stranger := sleeper(t), slotted(sleeper(t), "other", 1)
	for first := 1; first < 20; first++ {
		for second := first + 1; second <= 20; second++ {
			k := newLocker(t)
			k.Log = nil
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

// A member that a failed ending has recorded keeps the slot, even if the lock beside it was
// cleared.
func TestASlotWithASurvivorInItIsNotFree(t *testing.T) {
	k, owner, survivor := newLocker(t), sleeper(t), sleeper(t)
	r := slotted(owner, "outer", 1)
	held := wantVerdict(t, k, r, locker.Acquired)
	if err := k.RecordMembers(r.Atom.Name(), held.Token, []process.Identity{survivor}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(k.Dir.Path(r.Atom.Name().ActiveLock())); err != nil {
		t.Fatal(err)
	}
	stranger := slotted(sleeper(t), "other", 1)
	wantVerdict(t, k, stranger, locker.Full)
	end(t, survivor)
	wantVerdict(t, k, stranger, locker.Acquired)
}

// A process was stopped while it looked at a slot that the newcomer could take: the slot of a dead
// owner or, if the newcomer's atom is nested, the slot of its own owner.
func TestASlotGuardedByAStoppedProcessIsStuck(t *testing.T) {
	for _, nested := range []bool{false, true} {
		k, owner := newLocker(t), dead(t)
		if nested {
			owner = sleeper(t)
		}
		newcomer := slotted(sleeper(t), "other", 1)
		newcomer.Pause = 0
		if nested {
			newcomer.Owner = owner
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
		outcome, err := k.Take(newcomer)
		if outcome.Verdict != locker.Stuck || fault.KindOf(err) != fault.NotPermitted || !strings.Contains(err.Error(), "kill -CONT "+strconv.Itoa(holder.PID)) {
			t.Errorf("%s, %v; want stuck, and how to go on", outcome.Verdict, err)
		}
		if after := locksOf(t, k); !slices.Equal(after, before) {
			t.Errorf("left are %v; before there were %v", after, before)
		}
		if !nested { // a living owner releases its slot by itself
			wantVerdict(t, k, slotted(sleeper(t), "second", 2), locker.Acquired)
			newcomer.Slots = 2
			wantVerdict(t, k, newcomer, locker.Full)
		}
		lockfile.GuardGrace = time.Minute
	}
}

// A newcomer that is denied as full looks at a living owner's slot without its guard: the owner
// may be releasing it.
func TestAGuardedSlotOfALivingOwnerIsFull(t *testing.T) {
	k := newLocker(t)
	wantVerdict(t, k, slotted(sleeper(t), "outer", 1), locker.Acquired)
	standsAt(t, k, motd.Slot(1))
	withoutGrace(t)
	wantVerdict(t, k, slotted(sleeper(t), "other", 1), locker.Full)
}

// The command holds the atom from now on, even if another process guards the slot. The lock's guard
// is free while the owner waits for the slot.
func TestACommandIsInItsLockThoughTheSlotIsGuarded(t *testing.T) {
	k, owner, command := newLocker(t), sleeper(t), sleeper(t)
	r := slotted(owner, "outer", 1)
	held := wantVerdict(t, k, r, locker.Acquired)
	guard := takeGuard(t, k, motd.Slot(1))
	defer guard.Close()
	recorded := make(chan error)
	go func() { recorded <- k.RecordCommand(r.Atom.Name(), held.Token, command) }()
	eventually(t, "the lock has the command", func() bool {
		return openActive(t, k.Dir.Active, r.Atom.Name()).Appended.Command.Same(command)
	})
	lock := openActive(t, k.Dir.Active, r.Atom.Name())
	if err := lock.Guard(guardWait / 2); err != nil {
		t.Errorf("the lock: %v", err)
	}
	lock.Close()
	if err := <-recorded; !errors.Is(err, locker.ErrGuarded) {
		t.Errorf("got %v", err)
	}
}

func TestALockIsClearedWithItsSlotOrNotAtAll(t *testing.T) {
	k, r := newLocker(t), slotted(dead(t), "outer", 1)
	r.Owner.Machine, r.Owner.Boot = "another", "another"
	wantVerdict(t, k, r, locker.Acquired)
	before := locksOf(t, k)
	guard := takeGuard(t, k, motd.Slot(1))
	lock := atom.File{Kind: atom.ActiveLock, Name: r.Atom.Name()}
	if err := k.Clear(lock); fault.KindOf(err) != fault.Denied {
		t.Errorf("got %v", err)
	}
	if after := locksOf(t, k); !slices.Equal(after, before) {
		t.Errorf("left are %v; before there were %v", after, before)
	}
	guard.Close()
	if err := k.Clear(lock); err != nil || len(locksOf(t, k)) != 0 {
		t.Errorf("%v; left are %v", err, locksOf(t, k))
	}
}

// A reader whose helper died between its two locks releases both, or can try again.
func TestAReadersReleaseIsDeniedWhileItsOtherLockIsGuarded(t *testing.T) {
	k, r := newLocker(t), ask(sleeper(t))
	r.Shared = true
	held := wantVerdict(t, k, r, locker.Acquired)
	lock := k.Dir.Path(readerLock(r.Owner).String())
	text, err := os.ReadFile(lock)
	if err != nil {
		t.Fatal(err)
	}
	plant(t, k, string(text), 0)
	if err := os.Chmod(k.Dir.Path("lock."+motdFiles), 0o600); err != nil {
		t.Fatal(err)
	}
	reader := openActive(t, k.Dir.Lock, readerLock(r.Owner))
	if err := reader.Guard(0); err != nil {
		t.Fatal(err)
	}
	again := locker.ReleaseRequest{Name: motdFiles, Token: held.Token}
	if err := k.Release(again); fault.KindOf(err) != fault.Denied || !strings.Contains(err.Error(), lock+": "+locker.ErrGuarded.Error()) {
		t.Errorf("got %v, of kind %v", err, fault.KindOf(err))
	}
	if left := locksOf(t, k); len(left) != 2 {
		t.Errorf("left are %v", left)
	}
	reader.Close()
	if err := k.Release(again); err != nil {
		t.Error(err)
	}
	if left := locksOf(t, k); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
}

// As with an owner's slot, the expired reader is not signalled and keeps the atom.
func TestAReaderWhoseSlotIsGuardedIsNotSignalled(t *testing.T) {
	k := newLocker(t)
	reader := slotted(sleeper(t), motd.Operand, 1)
	reader.Shared = true
	wantVerdict(t, k, reader, locker.Acquired)
	before := locksOf(t, k)
	guard := takeGuard(t, k, motd.Slot(1))
	writer := slotted(sleeper(t), motd.Operand, 1)
	writer.Limits.ExpireAfter = 0
	wantVerdict(t, k, writer, locker.Busy)
	if after := locksOf(t, k); !slices.Equal(after, before) {
		t.Errorf("left are %v; before there were %v", after, before)
	}
	if openActive(t, k.Dir.Lock, readerLock(reader.Owner)).Job().EndingBegan() || reader.Owner.Life() != process.Alive {
		t.Error("its ending seems to have begun")
	}
	guard.Close()
	wantVerdict(t, k, writer, locker.Acquired)
}

// A newcomer that ends an owner ends the job of all its atoms. A survivor holds each of them, and
// their slots, even if the newcomer was killed meanwhile.
func TestWhatOutlivesAnEndingHoldsAllAtomsOfItsOwner(t *testing.T) {
	for _, shared := range []bool{false, true} {
		k, owner, survivor := newLocker(t), sleeper(t), sleeper(t)
		outer, inner := slotted(owner, "outer", 2), slotted(owner, "inner", 0)
		outer.Shared = shared
		wantVerdict(t, k, slotted(sleeper(t), "first", 1), locker.Acquired)
		wantVerdict(t, k, outer, locker.Acquired)
		wantVerdict(t, k, inner, locker.Acquired)
		ended := takeGuard(t, k, inner.Atom.Name())
		if err := (&ending{Locker: k, active: ended}).record([]process.Identity{owner, survivor}); err != nil {
			t.Fatal(err)
		}
		ended.Close()
		end(t, owner)
		newcomer := slotted(sleeper(t), "outer", 2)
		wantVerdict(t, k, newcomer, locker.Busy)
		newcomer.Atom.Operand = "inner"
		wantVerdict(t, k, newcomer, locker.Busy)
		newcomer.Atom.Operand = "other"
		wantVerdict(t, k, newcomer, locker.Full)
		end(t, survivor)
		wantVerdict(t, k, newcomer, locker.Acquired)
		newcomer.Atom.Operand = "outer"
		wantVerdict(t, k, newcomer, locker.Acquired)
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
	if err := syscall.Kill(keeper.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
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
			t.Fatalf("begun %v: %s, and the owner is %s; want it stuck", begun, outcome.Verdict, owner.Life())
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

// The disk may be full at the second lock.
func TestAMemberIsInAllLocksOfTheOwnerBeforeItIsSignalled(t *testing.T) {
	for n := 1; n <= 3; n++ {
		k := newLocker(t)
		k.Log = nil
		owner := start(t, "sleep 60 & wait")
		descendant(t, owner.PID)
		outer, inner := slotted(owner, "outer", 1), slotted(owner, "inner", 0)
		wantVerdict(t, k, outer, locker.Acquired)
		wantVerdict(t, k, inner, locker.Acquired)
		met, err := failing(t, k, unix.SYS_WRITE, n, func() error { return endOwner(k, inner.Atom.Name(), 0) })
		if !met || err == nil || fault.KindOf(err) != fault.IO {
			t.Errorf("at %d: %v, %v", n, met, err)
		}
		if owner.Life() != process.Alive {
			t.Errorf("at %d: it was ended", n)
		}
	}
}

// An ending does not begin while another process guards one of the owner's other locks.
func TestAnOwnerIsNotSignalledWhileItsOtherLockIsGuarded(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	outer, inner := slotted(owner, "outer", 0), slotted(owner, "inner", 0)
	wantVerdict(t, k, outer, locker.Acquired)
	wantVerdict(t, k, inner, locker.Acquired)
	guard := takeGuard(t, k, outer.Atom.Name())
	newcomer := slotted(sleeper(t), "inner", 0)
	newcomer.Limits.ExpireAfter = 0
	wantVerdict(t, k, newcomer, locker.Busy)
	if openActive(t, k.Dir.Active, inner.Atom.Name()).Job().EndingBegan() || owner.Life() != process.Alive {
		t.Error("its ending seems to have begun")
	}
	guard.Close()
	wantVerdict(t, k, newcomer, locker.Acquired)
}

// Two newcomers come to a hung owner at the same tick, each to another of its atoms, and each
// needs the guard that the other holds. The one that gives up sooner (lib/lockdir/lockfile) lets
// go of its own, and the other goes on.
func TestOneOfTwoEndingsAtTwoLocksOfAnOwnerGoesOn(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	newcomer := func(operand string) func() (locker.Verdict, error) {
		wantVerdict(t, k, slotted(owner, operand, 1), locker.Acquired)
		r := slotted(sleeper(t), operand, 0)
		r.Limits.ExpireAfter = 0
		return verdictOf(k, r)
	}
	inner, outer := newcomer("inner"), newcomer("outer")
	path := func(operand string) string {
		return k.Dir.Path(slotted(owner, operand, 1).Atom.Name().ActiveLock())
	}
	waits, gaveUp, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var first, second locker.Verdict
	var err, failed error
	atTry(t, path("inner"), 1, func() { first, err = outer(); close(gaveUp) }, func() {
		go func() {
			defer close(done)
			atTry(t, path("outer"), 2, func() { second, failed = inner() }, func() { close(waits); <-gaveUp })
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
func TestAnEndingWaitsForTheHolderOfTheSlotsGuard(t *testing.T) {
	k := newLocker(t)
	over := filepath.Join(t.TempDir(), "over")
	owner := start(t, "trap : INT TERM; until [ -e '"+over+"' ]; do sleep 0.02; done")
	descendant(t, owner.PID) // else it may be ended before it has set its trap
	wantVerdict(t, k, slotted(owner, "outer", 1), locker.Acquired)
	newcomer := slotted(sleeper(t), "outer", 1)
	newcomer.Limits.ExpireAfter, newcomer.Pause = 0, time.Minute
	taken := make(chan locker.Verdict, 1)
	go func() {
		outcome, err := k.Take(newcomer)
		if err != nil {
			t.Error(err)
		}
		taken <- outcome.Verdict
	}()
	eventually(t, "members are recorded in the slot", func() bool {
		return openActive(t, k.Dir.Active, motd.Slot(1)).Job().EndingBegan()
	})
	guard := takeGuard(t, k, motd.Slot(1))
	time.Sleep(2 * guardWait)
	guard.Close()
	if err := os.WriteFile(over, nil, 0o600); err != nil {
		t.Error(err)
	}
	if verdict := <-taken; verdict != locker.Acquired {
		t.Errorf("%s; want it acquired", verdict)
	}
}

// A guarded slot of the owner is a failure only if a process has to wait for it. A file beside it
// that cannot be read or removed always is.
func TestAFailureBesideAGuardedSlotIsReported(t *testing.T) {
	for claim, prepare := range map[string]func(k *Locker, owner process.Identity) func() error{
		"denied": func(k *Locker, owner process.Identity) func() error {
			wantVerdict(t, k, sharing(slotted(sleeper(t), "inner", 0)), locker.Acquired)
			return func() error { _, err := k.Take(slotted(owner, "inner", 2)); return err }
		},
		"nested": func(k *Locker, owner process.Identity) func() error {
			return func() error { _, err := k.Take(slotted(owner, "inner", 2)); return err }
		},
		"released for a dead owner": func(k *Locker, owner process.Identity) func() error {
			reader := sharing(slotted(owner, "inner", 2))
			wantVerdict(t, k, reader, locker.Acquired)
			end(t, owner)
			return func() error { _, err := k.Take(slotted(sleeper(t), "inner", 0)); return err }
		},
	} {
		for call, number := range map[string]int{"openat": unix.SYS_OPENAT, "unlinkat": unix.SYS_UNLINKAT} {
			t.Run(claim+", "+call, func(t *testing.T) {
				for n, met := 1, true; met; n++ {
					k, owner := newLocker(t), sleeper(t)
					k.Log = nil
					wantVerdict(t, k, slotted(owner, "outer", 1), locker.Acquired)
					do := prepare(k, owner)
					second := k.Dir.Path(motd.Slot(2).ActiveLock())
					if err := os.WriteFile(second, []byte(contentOf(t, k, motd.Slot(1).ActiveLock())), 0o600); err != nil {
						t.Fatal(err)
					}
					guard := takeGuard(t, k, motd.Slot(1))
					var err error
					met, err = failing(t, k, number, n, do)
					if told := fault.KindOf(err) == fault.IO; told != met {
						t.Errorf("call %d: %v", n, err)
					}
					guard.Close()
				}
			})
		}
	}
}
