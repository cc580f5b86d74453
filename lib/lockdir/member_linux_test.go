package lockdir

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/test/support/must"
)

// nested is an owner and two members of its job, each of which has started a process.
type nested struct{ owner, left, leftChild, right, rightChild process.Identity }

func newNested(t *testing.T) (n nested) {
	t.Helper()
	n.owner = start(t, "sh -c 'sleep 60 & wait; wait' & sh -c 'sleep 60 & wait; wait' & wait; wait")
	var children []int
	eventually(t, "it has two children", func() bool {
		children = process.Children(n.owner.PID)
		return len(children) == 2
	})
	n.left, n.right = identity(t, children[0]), identity(t, children[1])
	n.leftChild, n.rightChild = identity(t, descendant(t, children[0])), identity(t, descendant(t, children[1]))
	return n
}

func identity(t *testing.T, pid int) process.Identity {
	t.Helper()
	return must.Get(process.Of(pid))(t)
}

func (n nested) members() []process.Identity {
	return []process.Identity{n.owner, n.left, n.right, n.leftChild, n.rightChild}
}

// wantMembers wants the lock of an atom to record these members and no others.
func wantMembers(t *testing.T, k *Locker, r locker.Request, want ...process.Identity) {
	t.Helper()
	if got := openActive(t, k.Dir.Active, r.Atom.Name()).Appended.Survivors; !slices.EqualFunc(got, want, process.Identity.Same) {
		t.Errorf("the lock of %s records %v; want %v", r.Atom.Operand, pids(got), pids(want))
	}
}

func pids(ids []process.Identity) (list []int) {
	for _, id := range ids {
		list = append(list, id.PID)
	}
	return list
}

// A member's lock gets the processes that the member has started, and not its parent or siblings: otherwise the
// member could not release its atom while they live. A process that is found after the first signals may belong to
// any member. The lock of an atom that a member takes then gets all members.
func TestAMembersLockRecordsTheMembersOfItsOwnJob(t *testing.T) {
	for _, own := range []bool{false, true} {
		k, n, late := newLocker(t), newNested(t), sleeper(t)
		outer, other := slotted(n.owner, "outer", 0), slotted(n.owner, "other", 0)
		left, right, taken := slotted(n.left, "left", 1), slotted(n.right, "right", 0), slotted(n.leftChild, "taken", 0)
		held := wantVerdict(t, k, outer, locker.Acquired)
		var inner locker.Outcome
		for _, r := range []locker.Request{other, left, right, slotted(sleeper(t), "another's", 0)} {
			if outcome := wantVerdict(t, k, r, locker.Acquired); r.Atom == left.Atom {
				inner = outcome
			}
		}
		record := func(members []process.Identity) error { return k.RecordMembers(outer.Atom.Name(), held.Token, members) }
		if !own {
			guard := takeGuard(t, k, outer.Atom.Name())
			defer guard.Close()
			record = (&ending{Locker: k, active: guard}).record
		}
		must.Do(t, record(n.members()))
		wantMembers(t, k, outer, n.members()[1:]...)
		wantMembers(t, k, other, n.members()[1:]...)
		wantMembers(t, k, left, n.leftChild)
		wantMembers(t, k, right, n.rightChild)
		wantVerdict(t, k, taken, locker.Acquired)
		must.Do(t, record([]process.Identity{late}))
		wantMembers(t, k, outer, append(n.members()[1:], late)...)
		wantMembers(t, k, left, n.leftChild, late)
		wantMembers(t, k, right, n.rightChild, late)
		if first := []process.Identity{n.owner, n.left, n.right, n.rightChild, late}; own {
			wantMembers(t, k, taken, first[1:]...) // the owner is not recorded in its own lock
		} else {
			wantMembers(t, k, taken, first...)
		}
		wantMembers(t, k, slotted(n.owner, "another's", 0))

		release := locker.ReleaseRequest{Name: left.Atom.Name(), Token: inner.Token}
		end(t, late)
		if err := k.Release(release); fault.KindOf(err) != fault.NotPermitted {
			t.Errorf("released beside its survivor: %v", err)
		}
		end(t, n.leftChild)
		must.Do(t, k.Release(release)) // no process of its own job lives
	}
}

// The command of a dead member holds the member's lock, and what the command has started belongs to the job.
func TestADeadMembersLockRecordsTheChildrenOfItsCommand(t *testing.T) {
	k, n := newLocker(t), newNested(t)
	outer, inner := slotted(n.owner, "outer", 0), slotted(dead(t), "inner", 0)
	wantVerdict(t, k, outer, locker.Acquired)
	held := wantVerdict(t, k, inner, locker.Acquired)
	must.Do(t, k.RecordCommand(inner.Atom.Name(), held.Token, n.left))
	guard := takeGuard(t, k, outer.Atom.Name())
	defer guard.Close()
	must.Do(t, (&ending{Locker: k, active: guard}).record(n.members()))
	wantMembers(t, k, inner, n.leftChild)
}

// The disk may be full at any of the locks: then no lock records an ending, and no process is signalled.
func TestAnEndingBeginsOnlyIfEveryLockRecordsIt(t *testing.T) {
	for i, met := 1, true; met; i++ {
		k, n := newLocker(t), newNested(t)
		k.Log = nil
		outer, inner := slotted(n.owner, "outer", 1), slotted(n.left, "inner", 0)
		held := wantVerdict(t, k, outer, locker.Acquired)
		nestedHeld := wantVerdict(t, k, inner, locker.Acquired)
		before := openActive(t, k.Dir.Active, outer.Atom.Name()).Modified()
		var err error
		met, err = failing(t, k, unix.SYS_WRITE, i, func() error { return endOwner(k, outer.Atom.Name(), 0) })
		if !met { // written three times: to the lock, its slot, and the member's
			if i != 4 || err != nil {
				t.Errorf("after %d: %v", i, err)
			}
			break
		}
		if fault.KindOf(err) != fault.IO || strings.Contains(err.Error(), "\n") {
			t.Errorf("at %d: %v", i, err)
		}
		wantMembers(t, k, outer)
		wantMembers(t, k, inner)
		if openActive(t, k.Dir.Active, motd.Slot(1)).Job().EndingBegan() || n.owner.Life() != process.Alive {
			t.Errorf("at %d: an ending has begun", i)
		}
		if now := openActive(t, k.Dir.Active, outer.Atom.Name()); !now.Modified().Equal(before) {
			t.Errorf("at %d: the time of the lock has changed", i)
		}
		letGo(t, k, inner, nestedHeld)
		letGo(t, k, outer, held)
	}
}

// What a whole job has left is not being ended: a daemon that holds an atom can release it.
func TestTheRestOfAWholeJobIsNotRecordedInMembersLocks(t *testing.T) {
	k, n := newLocker(t), newNested(t)
	outer, inner := slotted(n.owner, "outer", 0), slotted(n.left, "inner", 0)
	held, nestedHeld := wantVerdict(t, k, outer, locker.Acquired), wantVerdict(t, k, inner, locker.Acquired)
	must.Do(t, k.RecordRest(outer.Atom.Name(), held.Token, n.members()))
	wantMembers(t, k, outer, n.members()[1:]...)
	wantMembers(t, k, inner)
	letGo(t, k, inner, nestedHeld)
}

// BeingEnded stays true when the recorded members are dead: a member may have started another
// process just before its death.
func TestAGuardOrRecordedMembersMeanThatAJobIsBeingEnded(t *testing.T) {
	k, survivor := newLocker(t), sleeper(t)
	token := wantVerdict(t, k, ask(sleeper(t)), locker.Acquired).Token
	want := func(when string, want bool) {
		t.Helper()
		if got, err := k.BeingEnded(motdFiles, token); got != want || err != nil {
			t.Errorf("%s: %v, %v; want %v", when, got, err, want)
		}
	}
	want("no process holds the guard", false)
	active := lockOf(t, k)
	must.Do(t, active.Guard(time.Second))
	want("the guard is held", true)
	must.Do(t, active.AppendSurvivors([]process.Identity{survivor}))
	active.Close()
	want("a survivor is recorded", true)
	end(t, survivor)
	want("the survivor is dead", true)
	if ending, err := k.BeingEnded(motdFiles, "another's"); ending || err != nil {
		t.Errorf("for another acquisition: %v, %v", ending, err)
	}
}

// If the owner released the atom, it would run beside the survivor of a failed ending.
func TestAnOwnerCannotReleaseALockThatASurvivorHolds(t *testing.T) {
	k, owner, survivor := newLocker(t), sleeper(t), sleeper(t)
	held := wantVerdict(t, k, ask(owner), locker.Acquired)
	active := lockOf(t, k)
	must.Do(t, errors.Join(active.Guard(time.Second), active.AppendSurvivors([]process.Identity{survivor}), active.Close()))
	if err := releaseOf(k, held); fault.KindOf(err) != fault.NotPermitted {
		t.Errorf("released: %v", err)
	}
	end(t, owner)
	wantVerdict(t, k, ask(sleeper(t)), locker.Busy)
	end(t, survivor)
	wantVerdict(t, k, ask(sleeper(t)), locker.Acquired)
}
