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
	"adlock/lib/sysfile"
)

type unwrittenError struct{ Err error }

func (e *unwrittenError) Error() string { return e.Err.Error() }
func (e *unwrittenError) Unwrap() error { return e.Err }

// endJob ends the job of the lock in v. It records each member before signalling that member, or fails with an
// unwrittenError. So if this process is killed, the next newcomer reads in the lock which processes may live.
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
	defer r.StatusLine.Clear()
	err := ending.End(v.active.Job())
	var stuck *process.StuckError
	if errors.As(err, &stuck) {
		if err := e.record(nil); err != nil {
			fault.Report(err)
		}
	}
	return err
}

type ending struct {
	*Locker
	active  *lockfile.Active // the lock whose job is being ended; its guard is held
	pause   time.Duration
	members []process.Identity
	begun   bool // members are recorded, and may have been signalled
}

// record adds fresh members of the job, and those found before, to every lock and slot of its owner and to the locks of
// the members (protocol.md, 5). Before the first signal, a member's lock gets only the members of its own job. After
// that signal, a child that has lost its parent may no longer be found as a part of the member's job: from then on, a
// lock that already records members gets all fresh ones, and any other lock gets all members.
//
// If a lock is guarded by another process or cannot be written, the error is an unwrittenError. Before the
// first signal, record then removes what it has added: members in a lock mean that an ending has begun.
func (e *ending) record(fresh []process.Identity) error {
	owner, before, wait := e.active.Record.Owner, e.members, guardWait
	e.members = append(e.members, fresh...)
	if len(e.members) == 0 {
		return nil
	}
	if e.begun { // a signalled member may still hold a guard during the pause
		wait = max(wait, e.pause)
	}
	others, err := e.Dir.LocksOf(append(e.members, owner), e.active.File, wait)
	defer closeAll(others)
	if err != nil {
		return &unwrittenError{err}
	}
	if lock := e.independent(others); lock != nil && !e.begun {
		e.members = before
		return &process.StuckError{PID: lock.Record.Owner.PID, Err: errors.New("may belong to the job, and holds a lock of its own: " + lock.Path())}
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

// independent returns the lock of a living process that counts as a member only because it runs the program image of
// the dead owner: the two may be subshells that a third process has forked. It returns nil if there is none.
func (e *ending) independent(others []*lockfile.Active) *lockfile.Active {
	owner := e.active.Record.Owner
	if owner.Image == 0 || owner.Life() != process.Dead {
		return nil
	}
	for _, lock := range others {
		if o := lock.Record.Owner; o.Image == owner.Image && !o.Same(owner) && o.PGID != owner.PID && o.SID != owner.PID && o.Life() == process.Alive {
			return lock
		}
	}
	return nil
}

func jobOf(lock *lockfile.Active, members []process.Identity) []process.Identity {
	job, err := killer.Members(lock.Job())
	if err != nil {
		return members
	}
	return slices.DeleteFunc(slices.Clone(members), func(m process.Identity) bool {
		return m.Start != 0 && !slices.ContainsFunc(job, func(e process.Entry) bool { return e.Key() == m.Key() })
	})
}

// RecordCommand records the command that the owner has started, in the owner's lock and slots. So the command holds the
// atom if the owner is killed, even outside the owner's process group. On locker.ErrGuarded, try again.
func (l *Locker) RecordCommand(name atom.Name, token string, command process.Identity) error {
	return l.record(name, token, func(lock *lockfile.Active) error { return lock.AppendCommand(command) })
}

// RecordMembers records the members of a job before its own supervisor signals them. On locker.ErrGuarded, try again: a
// newcomer is ending the job and records them itself, or another process guards one of the locks.
func (l *Locker) RecordMembers(name atom.Name, token string, members []process.Identity) error {
	return l.underGuard(name, token, func(active *lockfile.Active) error {
		job := active.Job()
		e := ending{Locker: l, active: active, members: slices.Clone(job.Recorded()), begun: job.EndingBegan()}
		return e.record(members)
	})
}

// RecordRest records the processes that the command of a whole job (--whole-job) has left running.
func (l *Locker) RecordRest(name atom.Name, token string, rest []process.Identity) error {
	return l.record(name, token, func(lock *lockfile.Active) error { return lock.AppendSurvivors(rest) })
}

// record calls do with the lock of an acquisition, under its guard, and then with each slot of its owner. It
// frees the lock's guard before it waits for the slots' guards, so that the owner's release need not wait.
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

// BeingEnded reports whether another process is ending the job of an acquisition, or the lock records members of
// that job (even dead ones, which may just have started others). It is also true while a process guards the lock
// only to check it, so the caller must ask again. It is false if the lock is gone.
func (l *Locker) BeingEnded(name atom.Name, token string) (bool, error) {
	active, err := l.acquisition(name, token)
	if err != nil {
		return false, sysfile.IgnoreMissing(err)
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

// isEnded reports whether the process that guards the lock is ending the owner, rather than only checking the lock.
func (l *Locker) isEnded(r *locker.ReleaseRequest, own record.Record) bool {
	if _, found := l.EndingOf(own); found {
		return true
	}
	active, err := l.acquisition(r.Name, own.Token)
	if err != nil {
		return false
	}
	defer active.Close()
	return !r.Expired && active.Job().EndingBegan() // if Expired, the owner itself has recorded an ending
}

func (l *Locker) acquisition(name atom.Name, token string) (*lockfile.Active, error) {
	active, err := l.Dir.Active(name)
	if err == nil && active.Record.Token != token {
		active.Close()
		err = fs.ErrNotExist
	}
	if errors.Is(err, fs.ErrNotExist) {
		active, err = l.reader(&locker.ReleaseRequest{Name: name, Token: token})
	}
	return active, err
}

func (l *Locker) underGuard(name atom.Name, token string, do func(*lockfile.Active) error) error {
	active, err := l.acquisition(name, token)
	if err != nil {
		return sysfile.IgnoreMissing(err)
	}
	defer active.Close()
	switch err := active.GuardReporting(guardWait); {
	case errors.Is(err, locker.ErrLost):
		return nil
	case err != nil:
		return err
	}
	return do(active)
}
