package lockdir

import (
	"errors"
	"io/fs"
	"slices"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/killer"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/lib/record"
)

// unwrittenError says that the members of a job could not be recorded, so that
// none was signalled.
type unwrittenError struct{ Err error }

func (e *unwrittenError) Error() string { return e.Err.Error() }
func (e *unwrittenError) Unwrap() error { return e.Err }

// endJob ends the owner's whole job under the guard of its lock, in which each
// member is recorded before it is signalled: should this process fail at it, or
// be killed, the next newcomer finds what lives on.
func (l *Locker) endJob(r *locker.Request, v *view) error {
	e := ending{Locker: l, active: v.active, pause: r.Pause}
	ending := killer.Killer{
		Pause: r.Pause,
		Observe: func(s killer.Signalled) {
			l.Signalled(r, &v.View, s)
			r.ShowEnding(v.Record.Owner, s)
		},
		Record: e.record,
	}
	defer r.Line.Clear()
	err := ending.End(v.active.Job())
	var stuck *process.StuckError
	if errors.As(err, &stuck) {
		if err := e.record(nil); err != nil {
			fault.Report(err)
		}
	}
	return err
}

// ending is what has been recorded of one.
type ending struct {
	*Locker
	active  *lockfile.Active // at which it is: its guard is held
	pause   time.Duration
	members []process.Identity
	begun   bool // some have been signalled
}

// record adds members of the job, and those of before, to every lock of its owner, slots
// too: its job is the job of them all, and it may have taken another atom since. A member
// that holds a lock itself will be dead when it comes to a survivor: its lock is told of
// those of its own job and, as they may have lost their parents, of all that are found
// once the first have been signalled; of all others too where it was taken since.
//
// Where another process is at one of the locks, or one cannot be written, nothing is left in
// any: a lock with members in it would tell of an ending that has not begun.
func (e *ending) record(fresh []process.Identity) error {
	owner, before, wait := e.active.Record.Owner, e.members, guardWait
	e.members = append(e.members, fresh...)
	if len(e.members) == 0 {
		return nil
	}
	if e.begun { // and is to be ended
		wait = max(wait, e.pause)
	}
	others, err := e.Dir.LocksOf(append(e.members, owner), e.active.File, wait)
	defer closeAll(others)
	if err != nil {
		return &unwrittenError{err}
	}
	locks := append(others, e.active)
	for _, lock := range locks {
		told := e.members
		switch {
		case lock.Record.Owner.Same(owner):
		case !e.begun:
			told = jobOf(lock, e.members)
		case lock.Job().EndingBegan():
			told = e.members[len(before):]
		}
		err = errors.Join(err, lock.AppendSurvivors(told))
	}
	if err == nil {
		e.begun = true
		return nil
	}
	for i := 0; !e.begun && i < len(locks); i++ {
		err = errors.Join(err, locks[i].Withdraw())
	}
	return &unwrittenError{err}
}

// jobOf returns those of the members that belong to the job of the lock. One that
// the process table does not show may.
func jobOf(lock *lockfile.Active, members []process.Identity) []process.Identity {
	job, err := killer.Members(lock.Job())
	if err != nil {
		return members
	}
	return slices.DeleteFunc(slices.Clone(members), func(m process.Identity) bool {
		return m.Start != 0 && !slices.ContainsFunc(job, func(e process.Entry) bool { return e.Key() == m.Key() })
	})
}

// RecordCommand adds the command that the owner of the acquisition has started
// to its lock: one that leaves the owner's process group holds the atom though
// the owner is killed. With locker.ErrGuarded another process is at the lock, and the
// caller tries again: a newcomer may be killed before it has recorded a member.
func (l *Locker) RecordCommand(name atom.Name, token string, command process.Identity) error {
	return l.record(name, token, func(lock *lockfile.Active) error { return lock.AppendCommand(command) })
}

// RecordMembers adds the members of a job to its lock, and to those that record of an
// ending says, before its own supervisor signals them. It is locker.ErrGuarded where a
// newcomer is ending the job: it has recorded them, and each is to get each signal once;
// or where a process is at another of these locks, and the caller tries again.
func (l *Locker) RecordMembers(name atom.Name, token string, members []process.Identity) error {
	return l.underGuard(name, token, func(active *lockfile.Active) error {
		job := active.Job()
		e := ending{Locker: l, active: active, members: slices.Clone(job.Recorded()), begun: job.EndingBegan()}
		return e.record(members)
	})
}

// RecordRest adds what the command of a whole job has left, which is not ended.
func (l *Locker) RecordRest(name atom.Name, token string, rest []process.Identity) error {
	return l.record(name, token, func(lock *lockfile.Active) error { return lock.AppendSurvivors(rest) })
}

// record has do write into the lock of an acquisition for its owner, and then into the
// owner's slots. Meanwhile the lock is not guarded: an owner that waits at a slot again
// and again would else be in the way of its own release.
func (l *Locker) record(name atom.Name, token string, do func(lock *lockfile.Active) error) error {
	var own record.Record
	err := l.underGuard(name, token, func(active *lockfile.Active) error {
		own = active.Record
		return do(active)
	})
	if err != nil {
		return err
	}
	held, err := l.slotsOf(own)
	defer closeAll(held)
	for _, slot := range held {
		err = errors.Join(err, do(slot))
	}
	return err
}

// BeingEnded tells whether a newcomer is ending the job of an acquisition, or has
// begun to. It holds the guard from before it records the members, and that before the
// first signal, to the end; a process that only looks lets go of the guard at once, and is
// not there when asked again. A newcomer that was killed meanwhile has
// left a record: whether those in it live says nothing, as what they had just
// started is not among them.
func (l *Locker) BeingEnded(name atom.Name, token string) (bool, error) {
	active, err := l.acquisition(name, token)
	if err != nil {
		return false, ignoreMissing(err)
	}
	defer active.Close()
	if active.Job().EndingBegan() {
		return true, nil
	}
	switch err := active.Guard(0); {
	case errors.Is(err, locker.ErrGuarded):
		return true, nil
	case errors.Is(err, locker.ErrLost):
		return false, nil
	case err != nil:
		return false, err
	}
	return active.Job().EndingBegan(), nil
}

// isEnded tells whether the process at the lock of an acquisition is ending its owner, and does
// not merely look: the runlog says so, or the lock, where the owner is not alone in its job. It
// is read anew.
func (l *Locker) isEnded(name atom.Name, own record.Record) bool {
	if _, found := l.EndingOf(own); found {
		return true
	}
	active, err := l.acquisition(name, own.Token)
	if err != nil {
		return false
	}
	defer active.Close()
	return active.Job().EndingBegan()
}

// acquisition opens the lock of an acquisition, an active lock or a reader's:
// fs.ErrNotExist where a person has cleared it.
func (l *Locker) acquisition(name atom.Name, token string) (*lockfile.Active, error) {
	active, err := l.Dir.Active(name)
	if err == nil && active.Record.Token != token {
		active.Close()
		err = fs.ErrNotExist
	}
	if errors.Is(err, fs.ErrNotExist) {
		active, err = l.reader(locker.ReleaseRequest{Name: name, Token: token})
	}
	return active, err
}

// underGuard calls do with the lock of an acquisition, under its guard. A lock
// that is not there any more needs nothing.
func (l *Locker) underGuard(name atom.Name, token string, do func(*lockfile.Active) error) error {
	active, err := l.acquisition(name, token)
	if err != nil {
		return ignoreMissing(err)
	}
	defer active.Close()
	switch err := active.GuardAloud(guardWait); {
	case errors.Is(err, locker.ErrLost):
		return nil
	case err != nil:
		return err
	}
	return do(active)
}
