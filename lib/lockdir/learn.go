package lockdir

import (
	"errors"
	"io/fs"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/learn"
	"adlock/lib/locker"
	"adlock/lib/record"
)

// learnFromAsking teaches the atom how often it was asked for too soon since it was last taken. It is called
// before this acquisition is logged, as the log entry would end that count.
func (l *Locker) learnFromAsking(r *locker.Request, name atom.Name, own record.Record) {
	lesson := l.LessonOfAsking(r, time.Time{})
	if known := r.Learned; known.Heed(lesson) { // otherwise there is nothing new to write
		r.Resolve(l.learn(name, own, lesson))
	}
}

// learn applies a lesson (nil: none) to what the atom has learned, and returns the result. The caller holds
// the active lock or a reader's lock. A failure is only reported; after a failed read the result is zero.
func (l *Locker) learn(name atom.Name, own record.Record, lesson learn.Lesson) learn.State {
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

func (l *Locker) teach(name atom.Name, own record.Record, lesson learn.Lesson) (learn.State, error) {
	last, err := l.lastOr(name, (&locker.Request{Atom: own.Atom}).NewMemory())
	if err != nil {
		return learn.State{}, err
	}
	if last.Memory.Learned.Heed(lesson) {
		err = l.Dir.Remember(name, last.Completed, last.Memory)
	}
	return last.Memory.Learned, err
}

// Forget deletes what the atom NAME has learned; fs.ErrNotExist if there is no such atom. A running job
// goes on, and the atom learns from that job again when it ends.
func (l *Locker) Forget(name atom.Name) error {
	return l.rewrite(name, func(m *record.Memory) { m.Learned = learn.State{} })
}

// Pause sets the pause of the atom NAME, or ends it if p is zero. It returns fs.ErrNotExist if there is no such atom.
func (l *Locker) Pause(name atom.Name, p record.Pause) error {
	return l.rewrite(name, func(m *record.Memory) { m.Pause = p })
}

// rewrite changes what the last lock of the atom NAME remembers, under the active lock.
func (l *Locker) rewrite(name atom.Name, change func(*record.Memory)) error {
	rewrite := func() error {
		last, err := l.Dir.Last(name)
		if err != nil {
			return err
		}
		change(&last.Memory)
		return l.Dir.Remember(name, last.Completed, last.Memory)
	}
	if _, err := l.Dir.Last(name); err != nil {
		return err
	}
	for {
		done, err := l.underActive(name, func() error { return l.Dir.Marked(name, rewrite) })
		if done || err != nil {
			return err
		}
	}
}

// underActive calls do while no newcomer can take the atom: under the guard of the active lock or, if none is
// there, under a lock of this process. If done is false and err is nil, try again: the lock has changed hands.
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
	temp, err := l.Dir.TempLock(own)
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
	return true, errors.Join(do(), temp.Withdraw())
}

// atomOf returns the atom NAME, or the zero Atom if neither the name nor the last lock identifies it.
func (l *Locker) atomOf(name atom.Name) atom.Atom {
	if a, known := name.Atom(); known {
		return a
	}
	last, _ := l.Dir.Last(name) // an unreadable last lock has no atom
	return last.Memory.Atom
}
