package lockdir

import (
	"errors"
	"io/fs"
	"time"

	"adlock/lib/atom"
	"adlock/lib/killer"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/record"
)

// Take acquires an atom (GetLock of the 1997 paper). A denial is an Outcome, not an error; Stuck is both.
func (l *Locker) Take(r locker.Request) (locker.Outcome, error) {
	if err := r.Atom.Check(); err != nil {
		return locker.Outcome{}, err
	}
	wait := lockfile.NewWaiting(l.Dir, &r, func(o locker.Outcome) { l.Waits(&r, o) })
	acquired := false
	defer func() { wait.Close(acquired) }()
	defer r.StatusLine.Clear()
	for {
		outcome, err := l.WatchFirst(&r, l.Dir.Fd(), func() (locker.Outcome, error) { return l.attempt(&r, wait) })
		overdue := l.FindOverdue(&r, &outcome)
		inside := r.Inside(outcome) || r.AtOnce && outcome.Verdict == locker.Busy && process.IsAbove(outcome.Blocker, r.Owner.PID)
		if r.AtOnce && err == nil && (overdue != nil || wait.Worthwhile(outcome) || inside) {
			return locker.Outcome{}, locker.ErrNotAtOnce
		}
		if overdue != nil {
			l.TellOverdue(&r, &outcome, overdue)
		}
		if err == errAgain || err == nil && wait.Worthwhile(outcome) && wait.Next(outcome) {
			continue
		}
		acquired = err == nil && outcome.Verdict == locker.Acquired
		outcome.ExpireAfter, outcome.Watch = r.Limits.ExpireAfter, r.WatchLength()
		l.LogIfDenied(&r, outcome, err, wait.Spent())
		return outcome, err
	}
}

// attempt tries once to take the atom (figure 3 of the paper). If the lock has changed, it returns errAgain.
func (l *Locker) attempt(r *locker.Request, w *lockfile.Waiting) (locker.Outcome, error) {
	name, p := r.Atom.Name(), first
	if w.Began {
		p = waiting
	}
	v := view{}
	defer v.close()
	d, err := l.look(&v, r, name, r.Clock(time.Now()), p)
	if err != nil {
		return locker.Outcome{}, err
	}
	w.InWay = v.inWay(d)
	if !w.IsTurn(d.Step == policy.Acquire || d.Step == policy.Reclaim, v.Record.Token) {
		w.InWay.Line, v.Active = true, policy.Active{Held: true, Owner: policy.Waiter}
		d = v.decide(r.Terms())
	}
	if r.AtOnce && !atOnce(r, &v, d.Step) {
		return locker.Outcome{}, locker.ErrNotAtOnce
	}
	l.FutureStamp(r, v.Last)
	if v.Last.Damaged && d.Step.Granted() {
		l.DamagedLast(r, l.Dir.Path(name.LastLock()))
	}
	switch {
	case d.Step == policy.Full:
		return v.full, nil
	case d.Step == policy.Acquire && v.Active.Entering:
		time.Sleep(time.Millisecond)
		return locker.Outcome{}, errAgain
	case d.Step == policy.Acquire, d.Reader >= 0 && d.Step != policy.Busy: // settle deals with that reader's lock
		return l.set(r, name, &v)
	case d.Step == policy.Expire && !r.LeaveExpired && !r.MayEnd(&v.View):
		return locker.Outcome{}, l.late(r, &v, d)
	case d.Step == policy.Reclaim, d.Step == policy.Expire && !r.LeaveExpired, d.Outdated() && d.Reader < 0 && v.Active.Newer: // a guarded lock may still be withdrawn
		return l.takeover(r, name, &v)
	case d.Step == policy.Unempty:
		return l.clearEmpty(r, &v)
	case d.Step == policy.Stuck:
		return l.stuck(r, &v, v.active.Unchecked())
	default:
		return r.Denied(d, &v.decider(d).View), nil
	}
}

func atOnce(r *locker.Request, v *view, step policy.Step) bool {
	switch step {
	case policy.Acquire, policy.Busy, policy.TooSoon:
		return !v.Last.Future && !v.Last.Damaged && !v.Active.Entering && !v.Active.Newer && !r.Shared && r.Slots == 0
	}
	return false
}

// set links the newcomer's lock as the active lock. Then it takes what else the run needs, or removes the lock
// again. It also checks the last lock again, or two newcomers could run the atom back to back.
func (l *Locker) set(r *locker.Request, name atom.Name, v *view) (locker.Outcome, error) {
	temp, own, err := l.prepareLock(r, v)
	if err != nil {
		return locker.Outcome{}, err
	}
	defer temp.Discard()
	if temp.Named() {
		if err := l.Dir.Sweep(temp.Modified()); err != nil {
			return locker.Outcome{}, err
		}
	}
	if err := temp.Link(name.ActiveLock()); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return locker.Outcome{}, errAgain
		}
		return locker.Outcome{}, err
	}
	return l.conclude(r, name, own, temp, inPlace)
}

func (l *Locker) conclude(r *locker.Request, name atom.Name, own record.Record, temp *lockfile.TempFile, p phase) (locker.Outcome, error) {
	outcome, err := l.settle(r, name, own, temp, p)
	if err != nil || outcome.Verdict != locker.Acquired {
		return outcome, locker.JoinErrors(err, l.withdraw(temp, own))
	}
	l.learnFromAsking(r, name, own)
	l.Acquired(r, own)
	return outcome, nil
}

func (l *Locker) settle(r *locker.Request, name atom.Name, own record.Record, temp *lockfile.TempFile, p phase) (locker.Outcome, error) {
	if !r.Shared {
		outcome, err := l.awaitNoReader(r, name, temp, p)
		if err != nil || outcome.Verdict != locker.Acquired {
			return outcome, err
		}
		return l.takeRights(r, name, own)
	}
	outcome, err := l.secondLook(r, name, temp, p)
	if err != nil || outcome.Verdict != locker.Acquired {
		return outcome, err
	}
	if err := l.clearDeadReaders(r, name, temp); err != nil {
		return locker.Outcome{}, err
	}
	outcome, err = l.takeRights(r, name, own)
	if err != nil || outcome.Verdict != locker.Acquired {
		return outcome, err
	}
	outcome, err = l.read(r, name, own, outcome)
	if err != nil || outcome.Verdict != locker.Acquired {
		return outcome, locker.JoinErrors(err, l.Dir.RemoveTick(name, r.Tick))
	}
	return outcome, temp.Withdraw()
}

// takeRights takes a slot, the file of Request.Flock and, last, the tick: a denied newcomer must not use up a tick.
func (l *Locker) takeRights(r *locker.Request, name atom.Name, own record.Record) (locker.Outcome, error) {
	outcome, err := r.TakeFile(l.takeSlot(r, own))
	return r.ClaimTick(outcome, err, func() (bool, error) { return l.Dir.ClaimTick(name, r.Tick) })
}

func (l *Locker) withdraw(temp *lockfile.TempFile, own record.Record) error {
	slots, err := l.releaseSlots(own)
	defer closeAll(slots)
	return errors.Join(err, temp.Withdraw())
}

// secondLook checks the last lock and the pauses again, except in the phase stamped. With an IfElapsed or
// --replace it first touches the newcomer's lock, so that both locks have their times from the file system's clock.
func (l *Locker) secondLook(r *locker.Request, name atom.Name, temp *lockfile.TempFile, p phase) (locker.Outcome, error) {
	if p == stamped {
		return locker.Outcome{Verdict: locker.Acquired}, nil
	}
	now := temp.Modified()
	if r.Limits.IfElapsed > 0 || r.Limits.Preempt() {
		var err error
		if now, err = temp.Touch(); err != nil {
			return locker.Outcome{}, err
		}
	}
	v := view{}
	d, err := l.look(&v, r, name, r.Clock(now), p)
	if err != nil || d.Step == policy.Acquire {
		return locker.Outcome{Verdict: locker.Acquired}, err
	}
	return r.Denied(d, &v.View), nil
}

// takeover replaces the lock of a dead owner, or of an expired one that it ends first, under that lock's guard.
func (l *Locker) takeover(r *locker.Request, name atom.Name, v *view) (locker.Outcome, error) {
	temp, own, err := l.prepareLock(r, v)
	if err != nil {
		return locker.Outcome{}, err
	}
	defer temp.Discard()
	if outcome, err := guard(r, v); err != nil || outcome.Verdict != "" {
		return outcome, err
	}
	now, err := temp.Touch()
	if err != nil {
		return locker.Outcome{}, err
	}
	// Check the last lock now: the stamp for an ended owner would deny the atom. For a dead owner's lock, secondLook checks
	// it once more.
	d, err := l.look(v, r, name, r.Clock(now), inPlace)
	if err != nil {
		return locker.Outcome{}, err
	}
	if outcome, err := r.FileBefore(&v.View, d.Step, l.Dir.JobsOfReaders); err != nil || outcome.Verdict != "" {
		return outcome, err
	}
	p := inPlace
	switch {
	case d.Step == policy.TooSoon, d.Outdated():
		return r.Denied(d, &v.View), nil
	case d.Step == policy.Expire && !r.LeaveExpired && r.MayEnd(&v.View):
		if outcome, err := l.end(r, v, d); err != nil || outcome.Verdict != "" {
			return outcome, err
		}
		p, err = stamped, l.stamp(name, v.active, r.NewMemory())
		fresh, anew, failed := l.prepareLock(r, v) // the age of the newcomer's own run must not include the ending
		if failed == nil {
			defer fresh.Discard()
		}
		temp, own, err = fresh, anew, locker.JoinErrors(err, failed)
	case d.Step != policy.Reclaim:
		return locker.Outcome{}, errAgain
	}
	if err == nil {
		err = l.Dir.Sweep(now) // a crash may have left temporary files
	}
	if err == nil {
		err = temp.Replace(name.ActiveLock())
	}
	if err == nil || d.Step == policy.Expire { // an ending is reported whatever fails after it
		l.Replaced(r, d.Step, &v.View)
	}
	if err != nil {
		return locker.Outcome{}, err
	}
	if d.Step == policy.Expire {
		if lesson := r.LessonOfEnding(&v.Record, v.Active.Age); lesson != nil {
			r.Resolve(l.learn(name, v.Record, lesson))
		}
	}
	return l.conclude(r, name, own, temp, p)
}

// end ends the owner's whole job. With no verdict and no error, the job's death is confirmed.
func (l *Locker) end(r *locker.Request, v *view, d policy.Decision) (locker.Outcome, error) {
	l.Expiring(r, &v.View)
	err := l.endJob(r, v)
	var unwritten *unwrittenError
	var slot *lockfile.GuardedError
	switch {
	case errors.Is(err, killer.ErrAncestor): // this process was started from inside the job
		return r.Denied(d.With(policy.Busy), &v.View), nil
	case errors.As(err, &slot):
		return guardBusy(r, v, slot.Path, slot.Holder)
	case errors.As(err, &unwritten):
		return locker.Outcome{}, unwritten.Err
	case err != nil:
		return l.stuck(r, v, err)
	}
	return locker.Outcome{}, nil
}

func (l *Locker) clearEmpty(r *locker.Request, v *view) (locker.Outcome, error) {
	if outcome, err := guard(r, v); err != nil || outcome.Verdict != "" {
		return outcome, err
	}
	if v.active.Content != record.Empty { // its creator has just filled it
		return guarded(r, v)
	}
	if err := v.active.Remove(); err != nil {
		return locker.Outcome{}, err
	}
	l.SayEmptied(r, &v.View, v.active.Path())
	return locker.Outcome{}, errAgain
}

func (l *Locker) stuck(r *locker.Request, v *view, why error) (locker.Outcome, error) {
	return r.Stuck(v.active.Path(), &v.View, why, l.Cure(v.active.File, why))
}

func (l *Locker) late(r *locker.Request, v *view, d policy.Decision) error {
	return &locker.LateError{
		View: v.View, Decision: d, Held: v.active.Named,
		Watcher: func() locker.Watcher { return l.Dir.Watcher(r.Atom.Name()) },
		Stuck:   func(why error) (locker.Outcome, error) { return l.stuck(r, v, why) },
	}
}

func (l *Locker) prepareLock(r *locker.Request, v *view) (*lockfile.TempFile, record.Record, error) {
	own := r.Record()
	if v.noLast { // a last lock must exist before the atom is first taken: the paper's deadlock rule
		if err := l.Dir.MakeLast(r.Atom.Name(), r.NewMemory()); err != nil {
			return nil, own, err
		}
	}
	temp, err := l.Dir.TempLock(own)
	return temp, own, err
}
