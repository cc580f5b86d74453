package atom

import (
	"errors"
	"io/fs"
	"strconv"

	"adlock/lib/exit"
	"adlock/lib/limit"
	"adlock/lib/lock"
	"adlock/lib/policy"
	"adlock/lib/process"
)

// A slot is a lock like any other, taken after the atom, with IfElapsed 0; it
// never expires, and a crashed owner's is reclaimed by the same code. The atoms
// that one owner nests share one. Which they are is not counted anywhere: it is
// what the directory says, the owner's other locks in the program that were taken
// under a limit. So it does not matter in which order they are released.
//
// Two helpers of one owner may be at work at the same time, as one was called
// from a trap. They take turns at the slot's guard: a newcomer's lock is in place
// before it looks at the slot under the guard, and a release holds the guard from
// before it looks for other locks until its own is removed. So
//   - a release that comes first may miss the newcomer's lock and remove the
//     slot; the newcomer then finds it gone, and takes one;
//   - a newcomer that comes first is seen by the release, which leaves the slot;
//     where the newcomer is denied after all, it releases the slot itself;
//   - of two releases the second sees that the first one's lock is gone;
//   - a release that is killed between its two removals leaves a lock without a
//     slot, which can be released again, and no slot without a lock.

// slot is the lock of a slot, open and guarded.
type slot struct {
	*lock.Active
	number int
}

// takeSlot takes one of the program's slots, where the request limits them, or
// shares the one that its owner holds.
func (k *Keeper) takeSlot(r *Request, record lock.Record) (Outcome, error) {
	acquired := Outcome{Verdict: Acquired, Token: record.Token}
	if r.Slots == 0 {
		return acquired, nil
	}
	held, err := k.slotsOf(record)
	closeAll(held)
	if len(held) > 0 || err != nil && !errors.Is(err, lock.ErrGuarded) {
		return acquired, err
	}
	full := Outcome{Verdict: Full, Reason: "full: " + strconv.Itoa(r.Slots) + " atoms of " + r.Atom.Program + " are running"}
	for n := 1; n <= r.Slots; n++ {
		if taken, err := k.trySlot(r, record, n, &full); taken || err != nil {
			return acquired, err
		}
	}
	return full, nil
}

// slotsOf opens the slots that the lock's owner holds, as far as the lock's limit
// goes, each under its guard. The caller closes them, also with an error;
// lock.ErrGuarded says that another process is at one for too long.
func (k *Keeper) slotsOf(record lock.Record) (held []slot, failed error) {
	for n := 1; n <= record.Slots; n++ {
		active, err := k.slotOf(record, n)
		if active != nil {
			held = append(held, slot{active, n})
		}
		failed = errors.Join(failed, err)
	}
	return held, failed
}

// slotOf returns nil where the owner does not hold the n-th slot.
func (k *Keeper) slotOf(record lock.Record, n int) (*lock.Active, error) {
	active, err := k.Dir.Active(record.Atom.Slot(n))
	if err != nil {
		return nil, ignoreMissing(err)
	}
	if active.Content != lock.Full || !active.Record.Owner.Same(record.Owner) {
		active.Close()
		return nil, nil
	}
	err = active.Guard(guardWait)
	if err == nil {
		return active, nil
	}
	active.Close()
	if errors.Is(err, lock.ErrLost) { // given back, or cleared, by somebody else
		return nil, nil
	}
	return nil, exit.Wrap(active.Path(), err)
}

func closeAll(slots []slot) {
	for _, s := range slots {
		s.Close()
	}
}

// releaseSlots gives back the slots of the lock's owner that no other of its
// atoms shares. The caller removes the lock, and then closes what is returned.
func (k *Keeper) releaseSlots(record lock.Record) ([]slot, error) {
	held, failed := k.slotsOf(record)
	if errors.Is(failed, lock.ErrGuarded) && record.Owner.Life() == process.Dead {
		failed = nil // somebody else clears it; else the next newcomer does
	}
	if len(held) == 0 {
		return nil, failed
	}
	shared, err := k.limitOfOthers(record)
	if err != nil {
		return held, errors.Join(failed, err)
	}
	for _, s := range held {
		if s.number > shared {
			failed = errors.Join(failed, s.Remove())
		}
	}
	return held, failed
}

// limitOfOthers is the largest limit among the other locks of the lock's owner in
// its program: they may share any slot up to that number. Readers' locks come
// second, as a reader moves over from the one to the other.
func (k *Keeper) limitOfOthers(record lock.Record) (most int, err error) {
	for _, locks := range []struct {
		names func(prefix string) ([]string, error)
		open  func(name string) (*lock.Active, error)
	}{
		{k.Dir.Actives, k.Dir.Active},
		{k.Dir.ReadersIn, k.Dir.Reader},
	} {
		names, err := locks.names(record.Atom.Prefix())
		if err != nil {
			return 0, err
		}
		for _, name := range names {
			other, err := locks.open(name)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return 0, err
			}
			if other.Record.Token != record.Token && other.Record.Owner.Same(record.Owner) {
				most = max(most, other.Record.Slots)
			}
			other.Close()
		}
	}
	return most, nil
}

// trySlot is attempt for the n-th slot; what there is to say of who has it is
// added to full.
func (k *Keeper) trySlot(r *Request, record lock.Record, n int, full *Outcome) (bool, error) {
	fresh := record
	fresh.ExpireAfter, fresh.Patience, fresh.Slots, fresh.FromStart = limit.Never, 0, 0, false
	draft, err := k.Dir.Draft(fresh.Bytes())
	if err != nil {
		return false, err
	}
	defer draft.Discard()
	for {
		err := draft.Link(lock.ActivePrefix + r.Atom.Slot(n))
		if !errors.Is(err, fs.ErrExist) {
			return err == nil, err
		}
		mine, err := k.slotOf(record, n) // another helper of the owner may have been faster
		if mine != nil {
			return true, mine.Close()
		}
		if err == nil {
			err = k.reclaimSlot(r, draft, n, full)
		}
		switch {
		case errors.Is(err, lock.ErrLost):
		case errors.Is(err, errTaken), errors.Is(err, lock.ErrGuarded):
			return false, nil
		default:
			return err == nil, err
		}
	}
}

var errTaken = errors.New("the slot is taken")

// reclaimSlot replaces the n-th slot where its owner is dead. lock.ErrLost says
// that it has changed hands or is free: try again.
func (k *Keeper) reclaimSlot(r *Request, draft *lock.Draft, n int, full *Outcome) error {
	active, err := k.Dir.Active(r.Atom.Slot(n))
	if errors.Is(err, fs.ErrNotExist) {
		return lock.ErrLost
	}
	if err != nil {
		return err
	}
	defer active.Close()
	if err := active.Guard(0); err != nil {
		return err
	}
	if active.Content == lock.Damaged {
		return damaged(active)
	}
	never := policy.Limits{ExpireAfter: limit.Never, Explicit: true}
	v := View{Active: activeView(active, r.now()), active: active}
	switch policy.Decide(never, policy.Last{}, v.Active) {
	case policy.Unempty: // what a crash of the machine left of one
		k.sayEmpty(r, &v)
	case policy.Reclaim:
	default:
		if !full.endless {
			r.refuseEndless(full, &v)
		}
		return errTaken
	}
	return draft.Replace(lock.ActivePrefix + r.Atom.Slot(n))
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
