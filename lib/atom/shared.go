package atom

import (
	"errors"
	"io/fs"
	"time"

	"adlock/lib/lock"
	"adlock/lib/policy"
	"adlock/lib/process"
)

// Many readers or one writer. A reader takes the active lock as anybody does,
// puts a lock of its own beside it, read.NAME.PID, and gives the active lock
// back. A writer that has taken the active lock looks for readers and backs off
// while one lives. Both do so while they hold the active lock: so neither can
// miss the other, and an atom without readers costs one look for a file. Readers
// that keep coming can keep a writer waiting; the line of a store (package store)
// has no such weakness.

// entering is how long a reader may take between its two locks, for others that
// read: they look again meanwhile.
const entering = time.Second

// readerEnters reports whether the active lock is only that of a reader on its
// way in. Its age is by the machine's clock: a pass clock stands still.
func readerEnters(r *Request, v *View) bool {
	return r.Shared && v.Record.Shared && v.Active.Owner == policy.Lives &&
		process.Boottime()-v.Record.Boottime < entering
}

// secondLook, or granted where the last lock was looked at under a guard and has
// been stamped by this newcomer since.
type dueness func() (Outcome, error)

func granted() (Outcome, error) { return Outcome{Verdict: Acquired}, nil }

// settle is the last step of taking: with the active lock in place, a writer
// makes sure that nobody reads, and a reader moves over to a lock of its own.
func (k *Keeper) settle(r *Request, files string, record lock.Record, draft *lock.Draft, due dueness) (Outcome, error) {
	if !r.Shared {
		outcome, err := k.awaitNoReader(r, files, due)
		if err != nil || outcome.Verdict != Acquired {
			return outcome, err
		}
		return k.takeSlot(r, record)
	}
	outcome, err := due()
	if err != nil || outcome.Verdict != Acquired {
		return outcome, err
	}
	outcome, err = k.takeSlot(r, record)
	if err != nil || outcome.Verdict != Acquired {
		return outcome, err
	}
	outcome, err = k.read(r, files, record, outcome)
	if err != nil || outcome.Verdict != Acquired {
		return outcome, err
	}
	return outcome, draft.Withdraw()
}

// read puts the reader's own lock in place.
func (k *Keeper) read(r *Request, files string, record lock.Record, acquired Outcome) (Outcome, error) {
	if err := k.Dir.MarkRead(files); err != nil {
		return Outcome{}, err
	}
	draft, err := k.Dir.Draft(record.Bytes())
	if err != nil {
		return Outcome{}, err
	}
	defer draft.Discard()
	file := lock.ReaderFile(files, r.Owner.PID)
	err = draft.Link(file)
	if !errors.Is(err, fs.ErrExist) {
		return acquired, err
	}
	// A process that had this pid before, or this very one, which reads already.
	_, outcome, err := k.clearReader(r, files, file, granted)
	if err != nil || outcome.Verdict != Acquired {
		return outcome, err
	}
	return acquired, draft.Link(file)
}

// awaitNoReader returns Acquired where nobody reads any more: the dead are
// cleared, and those who have expired are ended. Only then is the last lock
// looked at, which a reader that was about to release may just have stamped; but
// not again after a stamp of this newcomer's own.
func (k *Keeper) awaitNoReader(r *Request, files string, due dueness) (Outcome, error) {
	readers, err := k.Dir.Readers(files)
	if err != nil {
		return Outcome{}, err
	}
	for _, file := range readers {
		stamped, outcome, err := k.clearReader(r, files, file, due)
		if err != nil || outcome.Verdict != Acquired {
			return outcome, err
		}
		if stamped {
			due = granted
		}
	}
	return due()
}

// clearReader removes a reader's lock where policy says so, as takeover does with
// the active lock, and tells whether it has stamped the last lock. The caller
// holds the active lock.
func (k *Keeper) clearReader(r *Request, files, file string, due dueness) (stamped bool, outcome Outcome, err error) {
	acquired := Outcome{Verdict: Acquired}
	active, err := k.Dir.Reader(file)
	if err != nil {
		return false, acquired, ignoreMissing(err)
	}
	defer active.Close()
	if active.Content != lock.Full && active.Content != lock.Empty {
		return false, Outcome{}, damaged(active)
	}
	v := View{Record: active.Record, Active: activeView(active, r.now()), active: active}
	step := policy.Decide(policy.Limits{ExpireAfter: r.Limits.ExpireAfter, Explicit: r.Limits.Explicit}, policy.Last{}, v.Active)
	switch {
	case step == policy.Stuck:
		outcome, err = k.stuck(r, &v, unchecked(v.Record.Owner))
		return false, outcome, err
	case step == policy.Unempty:
		if outcome, err = k.clearEmpty(r, &v); outcome.again {
			outcome = acquired
		}
		return false, outcome, err
	case step == policy.Expire && r.LeaveExpired:
		return false, r.outcome(Expired, step, &v), nil
	case step != policy.Expire && step != policy.Reclaim:
		return false, r.outcome(Busy, step, &v), nil
	}
	switch err := active.Guard(0); {
	case errors.Is(err, lock.ErrGuarded):
		outcome, err := r.guarded(&v)
		return false, outcome, err
	case errors.Is(err, lock.ErrLost):
		return false, acquired, nil // it has released it
	case err != nil:
		return false, Outcome{}, err
	}
	if outcome, err := due(); err != nil || outcome.Verdict != Acquired {
		return false, outcome, err
	}
	if step == policy.Expire {
		if outcome, err := k.end(r, &v); err != nil || outcome.Verdict != "" {
			return false, outcome, err
		}
	}
	slots, err := k.releaseSlots(active.Record)
	defer closeAll(slots)
	if err := errors.Join(err, k.stamp(files, active, r.memory()), active.Remove()); err != nil {
		return false, Outcome{}, err
	}
	k.record(r.replacedEvent(step, &v))
	return true, acquired, nil
}

// reader returns the lock of the reader that the Return is about; fs.ErrNotExist
// where there is none.
func (k *Keeper) reader(r Return) (*lock.Active, error) {
	readers, err := k.Dir.Readers(r.Files)
	if err != nil {
		return nil, err
	}
	for _, file := range readers {
		active, err := k.Dir.Reader(file)
		if err == nil && r.owns(active) {
			return active, nil
		}
		if err == nil {
			active.Close()
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return nil, fs.ErrNotExist
}
