package atom

import (
	"errors"
	"io/fs"
	"time"

	"adlock/lib/lock"
	"adlock/lib/process"
)

// unwrittenError says that the members of a job could not be recorded, so that
// nobody was signalled.
type unwrittenError struct{ Err error }

func (e *unwrittenError) Error() string { return e.Err.Error() }
func (e *unwrittenError) Unwrap() error { return e.Err }

// endJob ends the owner's whole job under the guard of its lock, in which each
// member is recorded before it is signalled: should this process fail at it, or
// be killed, whoever comes next finds out who lives on.
func (k *Keeper) endJob(r *Request, v *View) error {
	killer := process.Killer{
		Pause:   r.Pause,
		Observe: func(s process.Signalled) { k.record(r.signalEvent(v, s)) },
		Record: func(members []process.Identity) error {
			if err := k.appendSurvivors(v.active, members); err != nil {
				return &unwrittenError{err}
			}
			return nil
		},
	}
	return killer.End(v.active.Job())
}

// appendSurvivors adds members to the lock, whose guard is held, and to the slot
// that its owner holds, which must not be free while they live either.
func (k *Keeper) appendSurvivors(active *lock.Active, members []process.Identity) error {
	return errors.Join(active.AppendSurvivors(members),
		k.inSlot(active, func(slot *lock.Active) error { return slot.AppendSurvivors(members) }))
}

// inSlot calls do with each slot of the lock's owner, under the slot's guard.
func (k *Keeper) inSlot(active *lock.Active, do func(slot *lock.Active) error) error {
	held, failed := k.slotsOf(active.Record)
	defer closeAll(held)
	for _, slot := range held {
		failed = errors.Join(failed, do(slot.Active))
	}
	return failed
}

// RecordCommand adds the command that the owner of the acquisition has started
// to its lock: one that leaves the owner's process group holds the atom though
// the owner is killed. With lock.ErrGuarded somebody else is at the lock, and the
// caller tries again: a newcomer may be killed before it has recorded anybody.
func (k *Keeper) RecordCommand(files, token string, command process.Identity) error {
	return k.underGuard(files, token, guardWait, func(active *lock.Active) error {
		return errors.Join(active.AppendCommand(command),
			k.inSlot(active, func(slot *lock.Active) error { return slot.AppendCommand(command) }))
	})
}

// RecordMembers adds the members of a job to its lock before its own supervisor
// signals them. It is lock.ErrGuarded where a newcomer is ending the job: it has
// recorded them, and each is to get each signal once.
func (k *Keeper) RecordMembers(files, token string, members []process.Identity) error {
	return k.underGuard(files, token, guardWait, func(active *lock.Active) error {
		return k.appendSurvivors(active, members)
	})
}

// BeingEnded tells whether somebody is ending the job of an acquisition, or has
// begun to and left members of it alive. Whoever ends a job holds the guard from
// before he records them, and that before the first signal, to the end; one who
// only passes by lets go of the guard at once, and is not there when asked again.
func (k *Keeper) BeingEnded(files, token string) (bool, error) {
	active, err := k.acquisition(files, token)
	if err != nil {
		return false, ignoreMissing(err)
	}
	defer active.Close()
	if active.Job().Survived() != nil {
		return true, nil
	}
	switch err := active.Guard(0); {
	case errors.Is(err, lock.ErrGuarded):
		return true, nil
	case errors.Is(err, lock.ErrLost):
		return false, nil
	case err != nil:
		return false, err
	}
	return active.Job().Survived() != nil, nil
}

// acquisition opens the lock of an acquisition, an active lock or a reader's:
// fs.ErrNotExist where a person has cleared it.
func (k *Keeper) acquisition(files, token string) (*lock.Active, error) {
	active, err := k.Dir.Active(files)
	if err == nil && active.Record.Token != token {
		active.Close()
		err = fs.ErrNotExist
	}
	if errors.Is(err, fs.ErrNotExist) {
		active, err = k.reader(Return{Files: files, Token: token})
	}
	return active, err
}

// underGuard calls do with the lock of an acquisition, under its guard. A lock
// that is not there any more needs nothing.
func (k *Keeper) underGuard(files, token string, wait time.Duration, do func(*lock.Active) error) error {
	active, err := k.acquisition(files, token)
	if err != nil {
		return ignoreMissing(err)
	}
	defer active.Close()
	switch err := active.Guard(wait); {
	case errors.Is(err, lock.ErrLost):
		return nil
	case err != nil:
		return err
	}
	return do(active)
}
