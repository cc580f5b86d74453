package lockdir

import (
	"errors"
	"io/fs"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/learn"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/record"
)

// learnFromRelease learns from success, as only that tells how long a run takes; a script that
// fails does not reach its release. A run that its own supervisor ended had all the time it was
// granted, and teaches that this was too little.
func (l *Locker) learnFromRelease(r locker.ReleaseRequest, own record.Record) {
	held := process.Boottime() - own.Boottime
	switch {
	case !own.Learn, r.Withdraw:
	case r.Expired:
		l.learn(r.Name, own, func(s *learn.State) bool { s.Ended(held); return true })
	case r.Signal == "" && r.Status.Value == 0:
		l.learn(r.Name, own, func(s *learn.State) bool { s.Succeeded(held); return true })
	}
}

// learnFromEnd learns from an owner that was ended by force. An owner that was ended before its
// own limit (by a newcomer's explicit limit) teaches nothing.
func (l *Locker) learnFromEnd(r *locker.Request, name atom.Name, v *view) {
	if !v.Record.Learn || r.Limits.Source != policy.Learned && v.Active.Age < v.Record.ExpireAfter {
		return
	}
	r.Resolve(l.learn(name, v.Record, func(s *learn.State) bool { s.Ended(v.Active.Age); return true }))
}

// learnFromAsking learns from how often the atom was asked for too soon since it was last taken.
// The runlog tells, as long as this acquisition is not in it yet.
func (l *Locker) learnFromAsking(r *locker.Request, name atom.Name, own record.Record) {
	if !r.Auto.IfElapsed || l.Log == nil {
		return
	}
	tooSoon := l.AskedTooSoon(r.Atom, time.Time{})
	if s := r.Learned; s.Asked(tooSoon) { // else there is nothing new to write
		r.Resolve(l.learn(name, own, func(s *learn.State) bool { return s.Asked(tooSoon) }))
	}
}

// learn applies the lesson to what the atom has learned, and returns the result. Only under the
// active lock, or a reader's. A failure to write it is reported and changes nothing else.
func (l *Locker) learn(name atom.Name, own record.Record, lesson func(*learn.State) bool) learn.State {
	var learned learn.State
	err := l.Dir.Marked(name, func() (err error) {
		learned, err = l.teach(name, own, lesson)
		return err
	})
	if err != nil {
		fault.Report(fault.Wrap(l.Dir.Path(name.LastLock()), err))
	}
	return learned
}

func (l *Locker) teach(name atom.Name, own record.Record, lesson func(*learn.State) bool) (learn.State, error) {
	last, err := l.Dir.Last(name)
	if errors.Is(err, fs.ErrNotExist) {
		last, err = record.Last{Memory: (&locker.Request{Atom: own.Atom}).NewMemory()}, nil
	}
	if err != nil {
		return learn.State{}, err
	}
	if !lesson(&last.Memory.Learned) {
		return last.Memory.Learned, nil
	}
	return last.Memory.Learned, l.Dir.Remember(name, last.Completed, last.Memory)
}

// Forget makes the atom NAME forget what it has learned; fs.ErrNotExist where there is no such
// atom. A job that is running goes on, and its end teaches anew.
func (l *Locker) Forget(name atom.Name) error {
	forget := func() error {
		last, err := l.Dir.Last(name)
		if err != nil {
			return err
		}
		last.Memory.Learned = learn.State{}
		return l.Dir.Remember(name, last.Completed, last.Memory)
	}
	if _, err := l.Dir.Last(name); err != nil {
		return err
	}
	for {
		done, err := l.underActive(name, func() error { return l.Dir.Marked(name, forget) })
		if done || err != nil {
			return err
		}
	}
}

// underActive calls do under the active lock: under the guard of the existing one, else under a
// lock of this process. done is false where the lock changed hands meanwhile: try again.
func (l *Locker) underActive(name atom.Name, do func() error) (done bool, err error) {
	active, err := l.Dir.Active(name)
	if errors.Is(err, fs.ErrNotExist) {
		return l.underOwn(name, do)
	}
	if err != nil {
		return false, err
	}
	defer active.Close()
	switch err := active.GuardReporting(guardWait); {
	case errors.Is(err, locker.ErrLost):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, do()
}

func (l *Locker) underOwn(name atom.Name, do func() error) (done bool, err error) {
	own, err := locker.MomentaryRecord(l.atomOf(name))
	if err != nil {
		return false, err
	}
	temp, err := l.Dir.TempFile(own.Bytes())
	if err != nil {
		return false, err
	}
	defer temp.Discard()
	if err := temp.Link(name.ActiveLock()); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return false, nil
		}
		return false, err
	}
	if err := l.Dir.RunsUnlocked(name); err != nil {
		return false, errors.Join(err, temp.Withdraw())
	}
	return true, errors.Join(do(), temp.Withdraw())
}

// atomOf is the atom NAME; the zero Atom where neither the name nor the last lock tells it.
func (l *Locker) atomOf(name atom.Name) atom.Atom {
	if a, known := name.Atom(); known {
		return a
	}
	last, _ := l.Dir.Last(name) // an unreadable last lock tells nothing
	return last.Memory.Atom
}
