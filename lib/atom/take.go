package atom

import (
	"errors"
	"io/fs"
	"time"

	"adlock/lib/exit"
	"adlock/lib/lock"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/runlog"
)

// Take takes the atom or says why not: GetLock of the 1997 paper. A denial is
// an Outcome, not an error. With the verdict Stuck there is an error too.
func (k *Keeper) Take(r Request) (Outcome, error) {
	if err := r.Atom.Check(); err != nil {
		return Outcome{}, err
	}
	wait := newWaiting(k.Dir, &r)
	defer wait.close()
	for {
		outcome, err := k.attempt(&r)
		if outcome.again {
			continue
		}
		if err == nil && wait.worthwhile(outcome) {
			if wait.next(outcome) {
				continue
			}
		}
		outcome.ExpireAfter = r.Limits.ExpireAfter
		k.recordDenial(&r, outcome, err, wait.spent())
		return outcome, err
	}
}

// attempt is figure 3: the last lock, the active lock, the decision, its step.
func (k *Keeper) attempt(r *Request) (Outcome, error) {
	files := r.Atom.Name()
	v, err := k.look(r, files, r.now())
	if err != nil {
		return Outcome{}, err
	}
	defer v.Close()
	if v.Last.Future {
		k.record(r.clockEvent(v.Last))
	}
	step := policy.Decide(r.Limits, v.Last, v.Active)
	switch step {
	case policy.Acquire:
		return k.set(r, files, &v)
	case policy.Expire:
		if r.LeaveExpired {
			return r.outcome(Expired, step, &v), nil
		}
		return k.takeover(r, files, &v)
	case policy.Reclaim:
		return k.takeover(r, files, &v)
	case policy.Unempty:
		return k.clearEmpty(r, &v)
	case policy.Stuck:
		return k.stuck(r, &v, unchecked(v.Record.Owner))
	case policy.TooSoon:
		return r.outcome(TooSoon, step, &v), nil
	}
	if readerEnters(r, &v) {
		time.Sleep(time.Millisecond)
		return Outcome{again: true}, nil
	}
	return r.outcome(Busy, step, &v), nil
}

// set puts a lock of one's own in place where there was none, and looks at the
// last lock again now that nobody else can run the atom: without this second
// look two newcomers would run it back to back. The lock is guarded meanwhile.
func (k *Keeper) set(r *Request, files string, v *View) (Outcome, error) {
	if v.noLast { // it must be there before the atom is first taken: the paper's deadlock rule
		if err := k.Dir.MakeLast(files, r.memory()); err != nil {
			return Outcome{}, err
		}
	}
	draft, record, err := k.draft(r)
	if err != nil {
		return Outcome{}, err
	}
	defer draft.Discard()
	if draft.Named() {
		if err := k.Dir.Sweep(draft.Made()); err != nil {
			return Outcome{}, err
		}
	}
	if err := draft.Link(lock.ActivePrefix + files); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return Outcome{again: true}, nil
		}
		return Outcome{}, err
	}
	due := func() (Outcome, error) { return k.secondLook(r, files, draft) }
	outcome, err := k.settle(r, files, record, draft, due)
	if err != nil || outcome.Verdict != Acquired {
		return outcome, errors.Join(err, k.withdraw(draft, record))
	}
	k.learnFromAsking(r, files, record)
	k.recordAcquire(r, record)
	return outcome, nil
}

// withdraw gives up an atom that was not to be had after all.
func (k *Keeper) withdraw(draft *lock.Draft, record lock.Record) error {
	slots, err := k.releaseSlots(record)
	defer closeAll(slots)
	return errors.Join(err, draft.Withdraw())
}

func (r *Request) memory() lock.Memory {
	if r.Atom.Exact() {
		return lock.Memory{}
	}
	return lock.Memory{Atom: r.Atom}
}

// secondLook compares inodes of one directory: the draft, touched, is now.
func (k *Keeper) secondLook(r *Request, files string, draft *lock.Draft) (Outcome, error) {
	if r.Limits.IfElapsed == 0 {
		return Outcome{Verdict: Acquired}, nil
	}
	now, err := draft.Touch()
	if err != nil {
		return Outcome{}, err
	}
	v := View{}
	if err := k.lookAtLast(&v, r, files, moment{real: now, fixed: r.Now}); err != nil {
		return Outcome{}, err
	}
	if !policy.Due(r.Limits, v.Last) {
		return r.outcome(TooSoon, policy.TooSoon, &v), nil
	}
	return Outcome{Verdict: Acquired}, nil
}

// takeover ends an expired owner, or finds a dead one, and replaces its lock,
// all under the guard of that lock.
func (k *Keeper) takeover(r *Request, files string, v *View) (Outcome, error) {
	draft, record, err := k.draft(r)
	if err != nil {
		return Outcome{}, err
	}
	defer draft.Discard()
	switch err := v.active.Guard(0); {
	case errors.Is(err, lock.ErrGuarded):
		return r.guarded(v)
	case errors.Is(err, lock.ErrLost):
		return Outcome{again: true}, nil
	case err != nil:
		return Outcome{}, err
	}
	now, err := draft.Touch()
	if err != nil {
		return Outcome{}, err
	}
	step, err := k.decideUnderGuard(r, files, v, moment{real: now, fixed: r.Now})
	if err != nil {
		return Outcome{}, err
	}
	switch {
	case step == policy.TooSoon:
		return r.outcome(TooSoon, step, v), nil
	case step == policy.Expire && !r.LeaveExpired:
		if outcome, err := k.end(r, v); err != nil || outcome.Verdict != "" {
			return outcome, err
		}
		// Ending took its time, and that is none of the newcomer's.
		fresh, anew, err := k.draft(r)
		if err != nil {
			return Outcome{}, err
		}
		defer fresh.Discard()
		draft, record = fresh, anew
	case step != policy.Reclaim:
		return Outcome{again: true}, nil
	}
	if err := k.replace(r, files, v, draft, now); err != nil {
		return Outcome{}, err
	}
	k.record(r.replacedEvent(step, v))
	if step == policy.Expire {
		k.learnFromEnd(r, files, v)
	}
	outcome, err := k.settle(r, files, record, draft, granted)
	if err != nil || outcome.Verdict != Acquired {
		return outcome, errors.Join(err, k.withdraw(draft, record))
	}
	k.learnFromAsking(r, files, record)
	k.recordAcquire(r, record)
	return outcome, nil
}

// decideUnderGuard looks at everything once more. Not again after the owner's
// end: the stamp that follows it would deny the one who took over.
func (k *Keeper) decideUnderGuard(r *Request, files string, v *View, now moment) (policy.Step, error) {
	if err := k.lookAtLast(v, r, files, now); err != nil {
		return 0, err
	}
	v.Record = v.active.Record
	v.Active = activeView(v.active, now)
	return policy.Decide(r.Limits, v.Last, v.Active), nil
}

// end ends the owner's whole job. An empty verdict means that its death is
// confirmed.
func (k *Keeper) end(r *Request, v *View) (Outcome, error) {
	expire := r.event(runlog.Expire)
	r.describe(&expire, v)
	k.record(expire)
	err := k.endJob(r, v)
	var unwritten *unwrittenError
	switch {
	case errors.Is(err, process.ErrAncestor): // this process was started from inside the job
		return r.outcome(Busy, policy.Busy, v), nil
	case errors.As(err, &unwritten):
		return Outcome{}, unwritten.Err
	case err != nil:
		return k.stuck(r, v, err)
	}
	return Outcome{}, nil
}

func (k *Keeper) replace(r *Request, files string, v *View, draft *lock.Draft, now time.Time) error {
	if err := k.stamp(files, v.active, r.memory()); err != nil {
		return err
	}
	if err := k.Dir.Sweep(now); err != nil { // a crash may have left drafts
		return err
	}
	return draft.Replace(lock.ActivePrefix + files)
}

// clearEmpty removes a lock that has been empty for too long, and looks again.
func (k *Keeper) clearEmpty(r *Request, v *View) (Outcome, error) {
	switch err := v.active.Guard(0); {
	case errors.Is(err, lock.ErrGuarded), err == nil && v.active.Content != lock.Empty:
		return r.guarded(v)
	case errors.Is(err, lock.ErrLost):
		return Outcome{again: true}, nil
	case err != nil:
		return Outcome{}, err
	}
	if err := v.active.Remove(); err != nil {
		return Outcome{}, err
	}
	k.sayEmpty(r, v)
	return Outcome{again: true}, nil
}

func (k *Keeper) sayEmpty(r *Request, v *View) {
	cleared := r.event(runlog.Empty)
	cleared.Age = runlog.Some(v.Active.Age)
	k.record(cleared)
	exit.Report(exit.New(exit.OK, v.active.Path(), "empty lock cleared"))
}

func (k *Keeper) stuck(r *Request, v *View, why error) (Outcome, error) {
	outcome := r.outcome(Stuck, policy.Stuck, v)
	outcome.Reason = why.Error()
	return outcome, exit.New(exit.NotPermitted, v.active.Path(),
		"stuck: "+why.Error()+"; if you know that it is dead: adlock clear "+v.active.Name())
}

// unchecked says why it cannot be known whether the owner lives.
func unchecked(owner process.Identity) error {
	if here := process.Here(); owner.Boot != here.Boot && owner.Machine == "" && here.Machine == "" {
		return errors.New("its owner is of another boot, and there is no /etc/machine-id to tell whether of this machine")
	}
	return errors.New("its owner cannot be checked from here")
}

// draft makes the lock of one's own, not yet in place.
func (k *Keeper) draft(r *Request) (*lock.Draft, lock.Record, error) {
	record := lock.Record{
		Owner: r.Owner, Job: r.Job, Token: lock.Token(), Atom: r.Atom,
		Boottime: process.Boottime(), IfElapsed: r.Limits.IfElapsed, ExpireAfter: r.Limits.ExpireAfter,
		Supervised: r.Supervised, Patience: r.Patience, Slots: r.Slots, FromStart: r.FromStart, Shared: r.Shared, Learn: r.Auto.any(),
	}
	draft, err := k.Dir.Draft(record.Bytes())
	return draft, record, err
}
