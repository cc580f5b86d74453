package lockdir

import (
	"errors"
	"io/fs"
	"time"

	"adlock/lib/atom"
	"adlock/lib/limit"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/record"
)

// A slot is a lock like any other, taken after the atom, with IfElapsed 0. It never expires, and
// the same code reclaims it after a crash. Nested atoms of one owner share a slot. They are not
// counted: the directory shows the owner's other locks in the program that were taken under
// a limit, so they may be released in any order.
//
// Two helpers of one owner may be at work at the same time, if one was called from a trap. They
// take turns at the slot's guard: a newcomer puts its lock in place before it looks at the slot
// under the guard, and a release holds the guard from before it looks for other locks until it
// has removed its own. So
//   - a release that comes first may miss the newcomer's lock and remove the slot; the newcomer
//     then finds it gone, and takes one;
//   - if a newcomer comes first, the release finds its lock and leaves the slot; if the
//     newcomer is denied after all, it releases the slot itself;
//   - of two releases, the second finds that the first one's lock is gone;
//   - a release that is killed between its two removals leaves a lock without a slot, which can
//     be released again, and no slot without a lock;
//   - if a process is stopped while it guards the slot, a release does not wait for ever: it
//     removes the lock without the slot, and a newcomer may take a slot that no lock of its
//     owner uses (slotIsUnused).

// takeSlot takes one of the program's slots, if the request limits them, or shares the one that
// its owner holds.
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
	if len(held) > 0 || err != nil {
		return acquired, err
	}
	if shared, err := l.supervisorHasSlot(r); shared || err != nil {
		return acquired, err
	}
	full := r.Full()
	var inWay []*lockfile.GuardedError // guards of slots that this newcomer could take
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

// slotsOf opens the slots that the lock's owner holds, up to the lock's limit, each under its
// guard. The caller closes them, also with an error; locker.ErrGuarded says that another process
// keeps the guard of one for too long.
func (l *Locker) slotsOf(own record.Record) (held []*lockfile.Active, failed error) {
	for n := 1; n <= own.Slots; n++ {
		active, err := l.slotOf(own, n)
		if active != nil {
			held = append(held, active)
		}
		failed = locker.JoinErrors(failed, err)
	}
	return held, failed
}

// supervisorHasSlot reports whether the newcomer's parent is a supervisor that holds a slot: both
// are one run, and the slot stays until the job is gone. So the atoms that a guarded script takes
// share the slot of its supervisor. A newcomer that is an `adlock run` itself is another run.
func (l *Locker) supervisorHasSlot(r *locker.Request) (bool, error) {
	parent, err := process.ParentOf(r.Owner.PID)
	if err != nil || r.Supervised {
		return false, nil // unknown: take a slot
	}
	for n := 1; n <= r.Slots; n++ {
		active, err := l.Dir.Active(r.Atom.Slot(n))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, err
		}
		active.Close()
		if active.SupervisedBy(parent) {
			return true, nil
		}
	}
	return false, nil
}

// slotOf opens the n-th slot under its guard; nil if the owner does not hold it.
func (l *Locker) slotOf(own record.Record, n int) (*lockfile.Active, error) {
	return l.Dir.LockOf(own.Owner, atom.File{Kind: atom.ActiveLock, Name: own.Atom.Slot(n)}, guardWait)
}

func closeAll(locks []*lockfile.Active) {
	for _, l := range locks {
		l.Close()
	}
}

// releaseSlots releases the slots of the lock's owner that no other of its atoms shares. The
// caller removes the lock, and then closes what is returned.
func (l *Locker) releaseSlots(own record.Record) ([]*lockfile.Active, error) {
	held, failed := l.slotsOf(own)
	if errors.Is(failed, locker.ErrGuarded) && own.Owner.Life() == process.Dead {
		failed = nil // another process is clearing the slot, or the next newcomer will
	}
	if len(held) == 0 {
		return nil, failed
	}
	shared, err := l.limitOfOthers(own)
	if err != nil {
		return held, locker.JoinErrors(failed, err)
	}
	for _, s := range held {
		if s.File.Name.SlotNumber() > shared {
			failed = locker.JoinErrors(failed, s.Remove())
		}
	}
	return held, failed
}

// limitOfOthers is the largest limit among the other locks of the lock's owner in its program:
// they may share any slot up to that number.
func (l *Locker) limitOfOthers(own record.Record) (most int, err error) {
	err = l.eachLockOf(own, func(lock *lockfile.Active) {
		if lock.Record.Token != own.Token {
			most = max(most, lock.Record.Slots)
		}
	})
	return most, err
}

// eachLockOf calls do with each lock of the lock's owner in its program, slots left out. Readers'
// locks are read second: a reader moves from its active lock to its reader's lock.
func (l *Locker) eachLockOf(own record.Record, do func(*lockfile.Active)) error {
	program := own.Atom.Name().Prefix()
	for _, kind := range []atom.Kind{atom.ActiveLock, atom.ReaderLock} {
		files, err := l.Dir.Files(kind)
		if err != nil {
			return err
		}
		for _, f := range files {
			if f.Name.Prefix() != program || f.Name.IsSlot() {
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

// trySlot tries to take the n-th slot, and reports whether it did. If another owner holds the slot,
// it adds that owner to the outcome full. It returns a lockfile.GuardedError if another process
// guards a slot that this newcomer could take.
func (l *Locker) trySlot(r *locker.Request, own record.Record, n int, full *locker.Outcome) (bool, error) {
	fresh := own
	fresh.ExpireAfter, fresh.Source, fresh.Patience, fresh.Slots = limit.Never, policy.None, 0, 0
	temp, err := l.Dir.TempLock(fresh)
	if err != nil {
		return false, err
	}
	defer temp.Discard()
	for {
		err := temp.Link(r.Atom.Slot(n).ActiveLock())
		if !errors.Is(err, fs.ErrExist) {
			return err == nil, err
		}
		mine, err := l.slotOf(own, n) // another helper of the owner may have been faster
		if mine != nil {
			return true, mine.Close()
		}
		if err == nil {
			err = l.reclaimSlot(r, temp, n, full)
		}
		if errors.Is(err, errTaken) {
			return false, nil
		}
		if !errors.Is(err, locker.ErrLost) {
			return err == nil, err
		}
	}
}

var errTaken = errors.New("the slot is taken")

// reclaimSlot replaces the n-th slot if it is free, which it checks again under the guard.
// locker.ErrLost says that the slot has changed hands or is gone: try again.
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
	if err := l.slotIsFree(r, &v, n, full); err != nil {
		return err
	}
	if err := active.GuardReporting(0); err != nil {
		return err
	}
	if err := l.slotIsFree(r, &v, n, full); err != nil {
		return err
	}
	if v.Active.Empty { // left by a crash of the machine
		l.SayEmptied(r, &v.View, v.active.Path())
	}
	return temp.Replace(r.Atom.Slot(n).ActiveLock())
}

// slotIsFree is nil if the owner of the n-th slot, which is in v, is dead or no longer uses it;
// else errTaken.
func (l *Locker) slotIsFree(r *locker.Request, v *view, n int, full *locker.Outcome) error {
	if v.active.Content == record.Damaged {
		return damaged(v.active)
	}
	v.setActive(r.Clock(time.Now()))
	free := l.slotIsUnused(v.active, n)
	if policy.Decide(r.Terms().ForSlot(), v.situation()).Step.Granted() {
		orphaned, err := l.hasOrphanedLock(v.active.Record)
		if err != nil {
			return err
		}
		free = !orphaned
	}
	if free {
		return nil
	}
	r.TakenBy(full, &v.View)
	return errTaken
}

// hasOrphanedLock tells whether a process of a dead owner's job still holds one of the owner's locks:
// it bears the mark of that lock, and not that of the slot, if the owner took the slot for another
// atom.
func (l *Locker) hasOrphanedLock(own record.Record) (bool, error) {
	orphaned := false
	err := l.eachLockOf(own, func(lock *lockfile.Active) { orphaned = orphaned || lock.Job().Remains() })
	return orphaned, err
}

// slotIsUnused tells whether the owner of the n-th slot lives but has no lock that could use the
// slot: its release found the slot guarded, or was killed. This stays true only under the slot's
// guard. A lock that cannot be read counts as one that could use the slot.
func (l *Locker) slotIsUnused(slot *lockfile.Active, n int) bool {
	own := slot.Record
	if slot.Content != record.Full || own.Owner.Life() == process.Dead || slot.Job().Survived() != nil {
		return false
	}
	if taker, err := l.acquisition(own.Atom.Name(), own.Token); err == nil { // the usual case, found without a listing
		taker.Close()
		return false
	}
	own.Token = "" // so that limitOfOthers counts every lock of the owner
	most, err := l.limitOfOthers(own)
	return err == nil && most < n
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
