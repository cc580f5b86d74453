package atom

import (
	"errors"
	"io/fs"
	"strconv"

	"adlock/lib/limit"
	"adlock/lib/lock"
	"adlock/lib/policy"
)

// takeSlot takes one of the program's slots after the atom, where the request
// limits them. A slot is a lock like any other, so a crashed owner's is
// reclaimed by the same code; IfElapsed is 0 and it never expires. It carries
// the token of the atom it was taken with, which is how the release finds it.
// Atoms that one owner nests share one slot.
func (k *Keeper) takeSlot(r *Request, record lock.Record) (Outcome, error) {
	acquired := Outcome{Verdict: Acquired, Token: record.Token}
	if r.Slots == 0 {
		return acquired, nil
	}
	for n := 1; n <= r.Slots; n++ {
		if mine, err := k.ownsSlot(r, n); mine || err != nil {
			return acquired, err
		}
	}
	for n := 1; n <= r.Slots; n++ {
		if taken, err := k.trySlot(r, record, n); taken || err != nil {
			return acquired, err
		}
	}
	return Outcome{Verdict: Full, Reason: "full: " + strconv.Itoa(r.Slots) + " atoms of " + r.Atom.Program + " are running"}, nil
}

func (k *Keeper) ownsSlot(r *Request, n int) (bool, error) {
	active, err := k.Dir.Active(r.Atom.Slot(n))
	if err != nil {
		return false, ignoreMissing(err)
	}
	defer active.Close()
	return active.Content == lock.Full && active.Record.Owner == r.Owner, nil
}

// trySlot is attempt for a slot.
func (k *Keeper) trySlot(r *Request, record lock.Record, n int) (bool, error) {
	files := r.Atom.Slot(n)
	record.ExpireAfter, record.Patience, record.Slots, record.FromStart = limit.Never, 0, 0, false
	draft, err := k.Dir.Draft(record.Bytes())
	if err != nil {
		return false, err
	}
	defer draft.Discard()
	err = draft.Link(lock.ActivePrefix + files)
	if !errors.Is(err, fs.ErrExist) {
		return err == nil, err
	}
	active, err := k.Dir.Active(files)
	if err != nil {
		return false, ignoreMissing(err)
	}
	defer active.Close()
	switch err := active.Guard(0); {
	case errors.Is(err, lock.ErrGuarded), errors.Is(err, lock.ErrLost):
		return false, nil
	case err != nil:
		return false, err
	}
	if active.Content == lock.Damaged {
		return false, damaged(active)
	}
	never := policy.Limits{ExpireAfter: limit.Never, Explicit: true}
	v := View{Active: activeView(active, r.now()), active: active}
	switch policy.Decide(never, policy.Last{}, v.Active) {
	case policy.Unempty: // what a crash of the machine left of one
		k.sayEmpty(r, &v)
	case policy.Reclaim:
	default:
		return false, nil
	}
	return true, draft.Replace(lock.ActivePrefix + files)
}

// releaseSlot gives back the slot that was taken with the token, if any.
func (k *Keeper) releaseSlot(record lock.Record) error {
	var failed error
	for n := 1; n <= record.Slots; n++ {
		failed = errors.Join(failed, k.removeSlot(record.Atom.Slot(n), record.Token))
	}
	return failed
}

func (k *Keeper) removeSlot(files, token string) error {
	active, err := k.Dir.Active(files)
	if err != nil {
		return ignoreMissing(err)
	}
	defer active.Close()
	if active.Record.Token != token {
		return nil
	}
	if err := active.Guard(guardWait); err != nil {
		return err
	}
	return active.Remove()
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
