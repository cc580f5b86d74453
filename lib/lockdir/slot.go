package lockdir

import (
	"errors"
	"io/fs"
	"slices"
	"time"

	"adlock/lib/atom"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/lib/sysfile"
)

// A slot is a lock like any other, but it is taken after the atom, has no last lock and never expires: its limits say only
// when its owner is overdue. How newcomers count slots, and why no count misses a run, is in protocol.md, 4. Nested atoms
// of one owner share a slot. They may be released in any order, as the directory shows the owner's other locks.
//
// Two helpers of one owner may be at work at the same time, if one was called from a trap. They take turns at
// the slot's guard: a newcomer puts its lock in place before it checks the slot under the guard, and a
// release holds the guard from before it looks for other locks until it has removed its own. So
//   - a release that comes first may miss the newcomer's lock and remove the slot; the newcomer then finds
//     the slot gone, and takes one;
//   - if a newcomer comes first, the release finds its lock and leaves the slot; if the newcomer is denied
//     after all, it releases the slot itself;
//   - of two releases, the second waits until the first has removed its own lock;
//   - a release that is killed between its two removals leaves a lock without a slot, which can be released
//     again, and no slot without a lock;
//   - if the guard's holder cannot go on (it is stopped, or waits for the trap that releases), a release removes
//     the lock without the slot, and a newcomer may take a slot that no lock of its owner uses (slotIsUnused).

// takeSlot takes one of the slots, if the request limits them, or shares the one that its owner or supervisor has.
func (l *Locker) takeSlot(r *locker.Request, own record.Record) (locker.Outcome, error) {
	acquired := locker.Outcome{Verdict: locker.Acquired, Token: own.Token}
	if r.Slots == 0 {
		return acquired, nil
	}
	held, err := l.slotsOf(own)
	closeAll(held)
	if errors.Is(err, locker.ErrGuarded) {
		err = nil
	}
	shares := len(held) > 0
	if err == nil && !shares {
		err = l.eachSlot(r.Atom, func(slot *lockfile.Active) { shares = shares || isSupervisors(r, slot) })
	}
	if err != nil {
		return acquired, err
	}
	full := r.Full()
	if shares {
		if room, err := l.hasRoom(r, 0, &full); !room || err != nil {
			return full, err
		}
		return acquired, nil
	}
	var inWay []*lockfile.GuardedError // slots that the newcomer could take, but that a stopped process guards
	for n := 1; n <= r.Slots; n++ {
		taken, err := l.trySlot(r, own, n, &full)
		var held *lockfile.GuardedError
		if !errors.As(err, &held) && (taken || err != nil) {
			return acquired, err
		}
		if held != nil && lockfile.StandsStill(held.Holder, r.Pause) != nil {
			inWay = append(inWay, held)
		}
	}
	if len(inWay) == r.Slots { // otherwise another slot becomes free by itself
		return guardBusy(r, &view{}, inWay[0].Path, inWay[0].Holder)
	}
	return full, nil
}

// slotsIn returns the slots of the atom's program or semaphore, by number. (slices.SortFunc would add 10 KB of code.)
func (l *Locker) slotsIn(a atom.Atom) ([]atom.Name, error) {
	beginning := a.Name().SlotPrefix()
	slots, err := l.namesOf(func(n atom.Name) bool { return n.IsSlot() && n.SlotPrefix() == beginning }, atom.ActiveLock)
	var numbers []int
	for _, slot := range slots {
		numbers = append(numbers, slot.SlotNumber())
	}
	slices.Sort(numbers)
	for i, n := range numbers {
		slots[i] = a.Slot(n)
	}
	return slots, err
}

// slotsOf opens the slots that the lock's owner holds, each under its guard; none if the lock uses no slot. The caller
// closes them, also after an error. The error is ErrGuarded if another process has kept a slot's guard for too long.
func (l *Locker) slotsOf(own record.Record) (held []*lockfile.Active, failed error) {
	if own.Slots == 0 {
		return nil, nil
	}
	slots, failed := l.slotsIn(own.Atom)
	for _, slot := range slots {
		active, err := l.slotOf(own, slot)
		if active != nil {
			held = append(held, active)
		}
		failed = locker.JoinErrors(failed, err)
	}
	return held, failed
}

func (l *Locker) eachSlot(a atom.Atom, do func(*lockfile.Active)) error {
	slots, err := l.slotsIn(a)
	if err != nil {
		return err
	}
	for _, name := range slots {
		slot, err := l.Dir.Active(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		do(slot)
		slot.Close()
	}
	return nil
}

// isSupervisors reports whether the newcomer's parent is a supervisor that holds the slot: then both are one
// run, unless the newcomer is itself an `adlock run`.
func isSupervisors(r *locker.Request, slot *lockfile.Active) bool {
	parent, err := process.ParentOf(r.Owner.PID)
	return err == nil && !r.Supervised && slot.SupervisedBy(parent) // if the parent is unknown, take a slot
}

func (l *Locker) slotOf(own record.Record, slot atom.Name) (*lockfile.Active, error) {
	return l.Dir.LockOf(own.Owner, atom.File{Kind: atom.ActiveLock, Name: slot}, guardWait)
}

func closeAll(locks []*lockfile.Active) {
	for _, l := range locks {
		l.Close()
	}
}

// releaseSlots removes the slots of the lock's owner, unless another lock of the owner uses them or a process guards
// them (see slotIsUnused). The caller removes the lock, and then closes the returned slots, which frees their guards.
func (l *Locker) releaseSlots(own record.Record) ([]*lockfile.Active, error) {
	held, err := l.removeSlots(own)
	if errors.Is(err, locker.ErrGuarded) {
		err = nil
	}
	return held, err
}

func (l *Locker) removeSlots(own record.Record) ([]*lockfile.Active, error) {
	held, failed := l.slotsOf(own)
	if len(held) == 0 {
		return nil, failed
	}
	if shared, err := l.isShared(own); shared || err != nil {
		return held, locker.JoinErrors(failed, err)
	}
	for _, s := range held {
		failed = locker.JoinErrors(failed, s.Remove())
	}
	return held, failed
}

func (l *Locker) isShared(own record.Record) (shared bool, err error) {
	err = l.eachLockOf(own, func(lock *lockfile.Active) {
		shared = shared || lock.Record.Token != own.Token && lock.Record.Slots > 0
	})
	return shared, err
}

// eachLockOf calls do with each lock (not with a slot) of the owner in own whose atom has the same slots as
// own.Atom. Readers' locks come second, as a reader moves from its active lock to its reader's lock.
func (l *Locker) eachLockOf(own record.Record, do func(*lockfile.Active)) error {
	slots := own.Atom.Name().SlotPrefix()
	for _, kind := range []atom.Kind{atom.ActiveLock, atom.ReaderLock} {
		files, err := l.Dir.Files(kind)
		if err != nil {
			return err
		}
		for _, f := range files {
			if f.Name.SlotPrefix() != slots || f.Name.IsSlot() {
				continue
			}
			lock, err := l.Dir.Found(f)
			if err != nil {
				return err
			}
			if lock == nil {
				continue
			}
			if lock.Record.Owner.Same(own.Owner) {
				do(lock)
			}
			lock.Close()
		}
	}
	return nil
}

// trySlot reports whether it has taken the n-th slot. It adds the owners that hold slots to the outcome full.
// The error is a lockfile.GuardedError if another process guards that slot and this newcomer could take it.
func (l *Locker) trySlot(r *locker.Request, own record.Record, n int, full *locker.Outcome) (bool, error) {
	own.Slots = 0
	temp, err := l.Dir.TempLock(own)
	if err != nil {
		return false, err
	}
	defer temp.Discard()
	for {
		err := temp.Link(r.Atom.Slot(n).ActiveLock())
		if err == nil {
			return l.keepSlot(r, temp, n, full)
		}
		if !errors.Is(err, fs.ErrExist) {
			return false, err
		}
		mine, err := l.slotOf(own, r.Atom.Slot(n)) // another helper of the owner may have been faster
		if mine != nil {
			return true, mine.Close()
		}
		if err == nil {
			err = l.reclaimSlot(r, temp, n, full)
		}
		if errors.Is(err, errTaken) {
			return false, nil
		}
		if err == nil {
			return l.keepSlot(r, temp, n, full)
		}
		if !errors.Is(err, locker.ErrLost) {
			return false, err
		}
	}
}

// keepSlot reports whether there is room for the n-th slot, now in place and guarded; if not, it removes the slot.
func (l *Locker) keepSlot(r *locker.Request, temp *lockfile.TempFile, n int, full *locker.Outcome) (bool, error) {
	room, err := l.hasRoom(r, n, full)
	if room {
		return true, nil
	}
	return false, errors.Join(err, temp.Withdraw())
}

// hasRoom reports whether other owners hold fewer slots than the request allows, and adds these owners to the
// outcome full. own is the number of the newcomer's slot, or 0 if it shares one.
func (l *Locker) hasRoom(r *locker.Request, own int, full *locker.Outcome) (bool, error) {
	slots, err := l.slotsIn(r.Atom)
	taken := 0
	for _, slot := range slots {
		if slot.SlotNumber() == own {
			continue
		}
		is, failed := l.isTaken(r, slot, slot.SlotNumber() > own, full)
		err = errors.Join(err, failed)
		if is {
			taken++
		}
	}
	return err == nil && taken < r.Slots, err
}

func isOwn(r *locker.Request, slot *lockfile.Active) bool {
	return slot.Record.Owner.Same(r.Owner) || isSupervisors(r, slot)
}

// isTaken reports whether another owner holds the slot; a damaged one counts as taken. With wait it waits for
// the slot's guard first, as a newcomer that has just taken the slot may give it up.
func (l *Locker) isTaken(r *locker.Request, slot atom.Name, wait bool, full *locker.Outcome) (bool, error) {
	for {
		active, err := l.Dir.Active(slot)
		if err != nil {
			return false, sysfile.IgnoreMissing(err)
		}
		if isOwn(r, active) {
			active.Close()
			return false, nil
		}
		if wait {
			err = active.Guard(guardWait)
		}
		v := view{active: active}
		if err == nil || errors.Is(err, locker.ErrGuarded) {
			err = l.slotIsFree(r, &v, full)
		}
		active.Close()
		switch {
		case errors.Is(err, locker.ErrLost):
			continue
		case errors.Is(err, errTaken), active.Content == record.Damaged:
			return true, nil
		}
		return false, err
	}
}

var errTaken = errors.New("the slot is taken")

// reclaimSlot puts temp in the place of the n-th slot if the slot is free, also after it is guarded. It returns
// errTaken if the slot is taken, and ErrLost if the slot has changed and the caller has to try again.
func (l *Locker) reclaimSlot(r *locker.Request, temp *lockfile.TempFile, n int, full *locker.Outcome) error {
	active, err := l.Dir.Active(r.Atom.Slot(n))
	if errors.Is(err, fs.ErrNotExist) {
		return locker.ErrLost
	}
	if err != nil {
		return err
	}
	defer active.Close()
	v := view{active: active}
	if err := l.slotIsFree(r, &v, full); err != nil {
		return err
	}
	if err := active.GuardReporting(0); err != nil {
		return err
	}
	if err := l.slotIsFree(r, &v, full); err != nil {
		return err
	}
	if v.Active.Empty { // a crash of the machine leaves such a slot
		l.SayEmptied(r, &v.View, v.active.Path())
	}
	return temp.Replace(r.Atom.Slot(n).ActiveLock())
}

func (l *Locker) slotIsFree(r *locker.Request, v *view, full *locker.Outcome) error {
	if v.active.Content == record.Damaged {
		return damaged(v.active)
	}
	v.setActive(r.Clock(time.Now()))
	if v.decide(r.Terms().ForSlot()).Step.Granted() {
		orphaned, err := l.hasOrphanedLock(v.active.Record)
		if err != nil || !orphaned {
			return err
		}
		v.Active.Owner = policy.Orphaned
	} else if l.slotIsUnused(v.active) {
		return nil
	}
	r.TakenBy(full, &v.View)
	return errTaken
}

// hasOrphanedLock reports whether a process of a dead owner's job still holds one of the owner's locks. Such a
// process may have the mark of that lock only, and not of the slot, which the owner took for another atom.
func (l *Locker) hasOrphanedLock(own record.Record) (bool, error) {
	orphaned := false
	err := l.eachLockOf(own, func(lock *lockfile.Active) { orphaned = orphaned || lock.Job().Remains() })
	return orphaned, err
}

// slotIsUnused reports whether no lock of its owner uses the slot, which a release or denial found guarded and left.
// It returns false if the owner is dead or a recorded process may live. The answer is certain only under the guard.
func (l *Locker) slotIsUnused(slot *lockfile.Active) bool {
	own := slot.Record
	if slot.Content != record.Full || own.Owner.Life() == process.Dead || slot.Job().Survived() != nil {
		return false
	}
	if taker, err := l.acquisition(own.Atom.Name(), own.Token); err == nil { // the usual case, found without a listing
		taker.Close()
		return false
	}
	own.Token = "" // so that isShared counts every lock of the owner
	shared, err := l.isShared(own)
	return err == nil && !shared
}
