package lockdir

import (
	"errors"
	"io/fs"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/learn"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/lib/sysfile"
)

type phase int

const (
	first   phase = iota // a newcomer without a lock of its own: it checks the active lock and the last lock
	waiting              // a waiter: it also checks the readers and slots that would deny it the atom later
	asking               // a dry run: it also checks what a newcomer finds out only as it takes the atom
	inPlace              // a newcomer whose own lock is in place, or that holds the guard of the owner's lock
	stamped              // as inPlace, but the newcomer has had its second look, or has itself stamped the last lock
)

// look finds out whether the newcomer gets the atom, and writes nothing. It adds what it finds to v, stops at
// the first denial, and puts the learned limits of r in force. The caller closes v, also after an error.
//
// A waiter checks readers and slots before it links its own lock: a lock that it has to remove again would
// keep other newcomers out and wake waiters. This only saves work: settle checks them again, under the lock.
//
// No wake-up is lost: the watch began before this look, and the waiter waits only for files that this look
// has seen. If a lock in the way is removed, or its owner dies,
//   - before the look, the look finds that;
//   - between the look and Wait, Wait finds an event in its queue, or no process with the owner's pid;
//   - later, Wait returns.
func (l *Locker) look(v *view, r *locker.Request, name atom.Name, now locker.Moment, p phase) (d policy.Decision, err error) {
	err = l.lookAtLast(v, r, name, now)
	if err == nil {
		err = l.lookAtPause(v, r, name, p)
	}
	switch {
	case err != nil || v.Pause.Denies() || !policy.Due(r.Limits, v.Last): // denied, whatever the active lock says
	case p < inPlace:
		err = l.lookAtActive(v, r.Atom, name, now)
	case v.active != nil:
		v.setActive(now)
	}
	v.Active.Newer = v.Active.Held && r.IsOlder(v.Record, v.Active.Age)
	d = v.decide(r.Terms())
	around := p == asking || p == waiting && !v.Active.Held
	if err == nil && around && d.Step.Granted() && !r.Shared { // readers do not exclude each other
		err = l.lookAtReaders(v, r, name, p)
		d = v.decide(r.Terms())
	}
	if p == asking {
		v.seeChanger(r.Pause)
		d = v.decider(d).Foresee(d)
	}
	if err == nil && around && d.Step.Granted() {
		err = l.lookAtSlots(v, r)
		if full := v.decide(r.Terms()); full.Step == policy.Full {
			d = full
		}
	}
	return d, err
}

// lookAtPause adds the pause of the host or, if there is none, of the atom to v. A pause denies no
// newcomer that runs inside a job. The newcomer's own lock, once it is in place, does not count as such a job.
func (l *Locker) lookAtPause(v *view, r *locker.Request, name atom.Name, p phase) (err error) {
	if v.Pause, err = locker.HostPause(); err == nil && !v.Pause.On {
		v.Pause = v.Memory.Pause.Policy()
	}
	if err == nil && v.Pause.On {
		entries, failed := l.List()
		for i := range entries {
			e := &entries[i]
			e.Active.Held = e.Active.Held && (p < inPlace || e.Name != name || !e.Record.Owner.Same(r.Owner))
		}
		v.Pause.Inside, err = locker.InsideJob(entries), failed
	}
	return err
}

func (l *Locker) lookAtLast(v *view, r *locker.Request, name atom.Name, now locker.Moment) error {
	last, err := l.Dir.Last(name)
	if v.noLast = errors.Is(err, fs.ErrNotExist); v.noLast {
		r.Resolve(learn.State{})
		return nil
	}
	if err != nil {
		return err
	}
	used := func() (bool, error) { return l.Dir.HasTick(name, r.Tick) }
	return v.SeeLast(r, l.Dir.Path(name.LastLock()), last, now, used)
}

func (l *Locker) lookAtActive(v *view, a atom.Atom, name atom.Name, now locker.Moment) error {
	active, err := l.Dir.Active(name)
	if err != nil {
		return sysfile.IgnoreMissing(err)
	}
	v.active = active
	if err := process.Readable(); err != nil {
		return fault.Wrap(active.Path(), err)
	}
	switch active.Content {
	case record.Damaged:
		return damaged(active)
	case record.Full:
		if err := a.CheckFound(active.Path(), active.Record.Atom); err != nil {
			return err
		}
	}
	v.setActive(now)
	return nil
}

func (v *view) setActive(now locker.Moment) {
	lock := v.active
	v.Record, v.Job, v.Active = lock.Record, lock.Job(), policy.Active{Held: true, Age: lock.Age(now)}
	switch lock.Content {
	case record.Empty:
		v.Active.Empty, v.Active.Wrecked, v.Active.Age = true, lock.Wrecked, now.Real.Sub(lock.Modified())
	case record.PIDOnly:
		v.Active.Owner = policy.Untouched
		if !process.PIDLives(lock.Record.Owner.PID) {
			v.Active.Owner = policy.Gone
		}
	default:
		v.SeeOwner(lock.Record, locker.OwnerIf(v.Job, lock.Named))
		v.Restored = lock.Restored()
		v.Active.Entering = lock.Record.Shared && v.Active.Owner == policy.Lives && lock.Age(locker.Moment{Real: now.Real}) < entering
	}
}

func damaged(active *lockfile.Active) error {
	return fault.New(fault.IO, active.Path(), "is cut short, too large or of an unknown format; if you know that its owner is dead: adlock clear "+fault.Quoted(active.Path()))
}

// DryRun is Locker.DryRun for the directory at path. A missing directory that may be made (MayMake) counts as empty.
func DryRun(path string, r *locker.Request) (policy.Decision, error) {
	dir, err := lockfile.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := lockfile.MayMake(path); err != nil {
			return policy.Decision{}, err
		}
		r.Resolve(learn.State{})
		host, err := locker.HostPause()
		return r.ForeseeFile(policy.Decide(r.Terms(), policy.Situation{Pause: host})), err
	}
	if err != nil {
		return policy.Decision{}, err
	}
	defer dir.Close()
	return (&Locker{Dir: dir}).DryRun(r)
}

// DryRun returns what Take would do now, and writes nothing. It puts the learned limits of r in force.
func (l *Locker) DryRun(r *locker.Request) (policy.Decision, error) {
	v := view{}
	defer v.close()
	name := r.Atom.Name()
	d, err := l.look(&v, r, name, r.Clock(time.Now()), asking)
	if err != nil {
		return d, err
	}
	var jobs []process.Job
	for _, seen := range append(v.readers, v) {
		if seen.Active.Held {
			jobs = append(jobs, seen.Job)
		}
	}
	return r.ForeseeFile(r.ForeseeWatch(d, l.Dir.Watcher(name)), jobs...), nil
}

// seeChanger adds to v the process that is changing the lock and, if that process is stopped (StandsStill), an error
// that says so. pause is the longest time between two signals of an ending.
func (v *view) seeChanger(pause time.Duration) {
	if v.active != nil {
		v.Changer = v.active.GuardHolder()
		v.Standstill = lockfile.StandsStill(v.Changer, pause)
	}
}

func (l *Locker) lookAtReaders(v *view, r *locker.Request, name atom.Name, p phase) error {
	locks, err := l.Dir.Readers(name)
	for _, lock := range locks {
		reader, d, err := l.lookAtReader(r, lock)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if p == asking {
			reader.seeChanger(r.Pause)
		}
		reader.close()
		if v.readers = append(v.readers, reader); !d.Step.Granted() {
			break
		}
	}
	return err
}

// lookAtSlots adds the slots that other owners hold to v. A damaged slot is an error only if all
// slots before it are taken, so that the newcomer would try it; otherwise it counts as taken.
func (l *Locker) lookAtSlots(v *view, r *locker.Request) (failed error) {
	if r.Slots == 0 {
		return nil
	}
	v.full = r.Full()
	before, shares := 0, false
	err := l.eachSlot(r.Atom, func(slot *lockfile.Active) {
		if isOwn(r, slot) {
			shares = true
			return
		}
		seen, number := view{active: slot, View: locker.View{Active: policy.Active{Held: true}}}, slot.File.Name.SlotNumber()
		err := l.slotIsFree(r, &seen, &v.full)
		if err == nil {
			return
		}
		if err != errTaken && failed == nil && before == number-1 && number <= r.Slots {
			failed = err
		}
		before++
		v.slots = append(v.slots, seen)
	})
	if err != nil || shares {
		return err
	}
	return failed
}
