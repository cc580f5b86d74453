package atom

import (
	"errors"
	"io/fs"
	"os"

	"adlock/lib/exit"
	"adlock/lib/learn"
	"adlock/lib/limit"
	"adlock/lib/lock"
	"adlock/lib/name"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/runlog"
)

// Auto says which limits the atom's own history decides: those in Limits are
// replaced as soon as its last lock was read (package learn). A store beyond
// this machine remembers no lessons: there they are the defaults.
type Auto struct{ IfElapsed, ExpireAfter bool }

func (a Auto) any() bool { return a.IfElapsed || a.ExpireAfter }

// resolve puts in force what was learned. A limit that was learned is no
// explicit one: it does not shorten what an owner has asked for.
func (r *Request) resolve(learned learn.State) {
	r.learned = learned
	if r.Auto.IfElapsed {
		r.Limits.IfElapsed = learned.IfElapsed()
	}
	if r.Auto.ExpireAfter {
		r.Limits.ExpireAfter, r.Limits.Explicit = learned.ExpireAfter(r.Limits.IfElapsed), false
	}
}

// Explanation tells, once the last lock was read, why the limits are what they
// are; "" where none is learned.
func (r *Request) Explanation() string {
	var ifElapsed, expireAfter string
	if r.Auto.IfElapsed {
		ifElapsed = "IfElapsed " + limit.Format(r.Limits.IfElapsed) + ": " + r.learned.ExplainIfElapsed()
	}
	if r.Auto.ExpireAfter {
		expireAfter = "ExpireAfter " + limit.Format(r.Limits.ExpireAfter) + ": " + r.learned.ExplainExpireAfter(r.Limits.IfElapsed)
	}
	return joined(ifElapsed, expireAfter)
}

// learnFromRelease: only success tells how long a run takes, and a script that
// fails does not come to its release. A run that its own supervisor ended had
// all the time it was granted.
func (k *Keeper) learnFromRelease(r Return, record lock.Record) {
	held := process.Boottime() - record.Boottime
	switch {
	case !record.Learn, r.Withdraw:
	case r.Expired:
		k.learn(r.Files, record, func(s *learn.State) bool { s.Ended(held); return true })
	case r.Signal == "" && r.Status.Value == 0:
		k.learn(r.Files, record, func(s *learn.State) bool { s.Succeeded(held); return true })
	}
}

// learnFromEnd: an owner was ended by force. One that was ended sooner than it
// had been granted (by a newcomer with a limit of its own) teaches nothing.
func (k *Keeper) learnFromEnd(r *Request, files string, v *View) {
	if !v.Record.Learn || v.Active.Age < v.Record.ExpireAfter {
		return
	}
	r.resolve(k.learn(files, v.Record, func(s *learn.State) bool { s.Ended(v.Active.Age); return true }))
}

// learnFromAsking: how often the atom was asked for too soon, since it was last
// taken, is in the record. Before the new acquisition is.
func (k *Keeper) learnFromAsking(r *Request, files string, record lock.Record) {
	if !r.Auto.IfElapsed || k.Log == nil {
		return
	}
	tooSoon := 0
	for e := range k.sinceAcquired(r.Atom) {
		if e.Kind == runlog.Deny && e.Verdict == string(TooSoon) {
			tooSoon++
		}
	}
	if s := r.learned; s.Asked(tooSoon) { // seldom; so the file is written seldom
		r.resolve(k.learn(files, record, func(s *learn.State) bool { return s.Asked(tooSoon) }))
	}
}

// learn has the lesson change what the atom has learned, and returns that. Only
// under the active lock, or a reader's. What cannot be kept is said and changes nothing else.
func (k *Keeper) learn(files string, record lock.Record, lesson func(*learn.State) bool) learn.State {
	var learned learn.State
	err := k.Dir.Marked(files, func() (err error) {
		learned, err = k.teach(files, record, lesson)
		return err
	})
	if err != nil {
		exit.Report(exit.Wrap(k.Dir.Path(lock.LastPrefix+files), err))
	}
	return learned
}

func (k *Keeper) teach(files string, record lock.Record, lesson func(*learn.State) bool) (learn.State, error) {
	last, err := k.Dir.Last(files)
	if errors.Is(err, fs.ErrNotExist) {
		request := Request{Atom: record.Atom}
		last, err = lock.Last{Memory: request.memory()}, nil
	}
	if err != nil {
		return learn.State{}, err
	}
	if !lesson(&last.Memory.Learned) {
		return last.Memory.Learned, nil
	}
	return last.Memory.Learned, k.Dir.Remember(files, last.Completed, last.Memory)
}

// Forget makes the atom NAME forget what it has learned; fs.ErrNotExist where
// there is no such atom. One that runs goes on, and its end teaches anew.
func (k *Keeper) Forget(files string) error {
	forget := func() error {
		last, err := k.Dir.Last(files)
		if err != nil {
			return err
		}
		last.Memory.Learned = learn.State{}
		return k.Dir.Remember(files, last.Completed, last.Memory)
	}
	if _, err := k.Dir.Last(files); err != nil {
		return err
	}
	for {
		done, err := k.underActive(files, func() error { return k.Dir.Marked(files, forget) })
		if done || err != nil {
			return err
		}
	}
}

// underActive does what must be done under the active lock alone: under the
// guard of the one there is, or else under one of this process's own. done is
// false where that changed hands meanwhile: try again.
func (k *Keeper) underActive(files string, do func() error) (done bool, err error) {
	active, err := k.Dir.Active(files)
	if errors.Is(err, fs.ErrNotExist) {
		return k.underOwn(files, do)
	}
	if err != nil {
		return false, err
	}
	defer active.Close()
	switch err := active.Guard(guardWait); {
	case errors.Is(err, lock.ErrLost):
		return false, nil
	case errors.Is(err, lock.ErrGuarded):
		return false, exit.New(exit.Denied, active.Path(), err.Error())
	case err != nil:
		return false, err
	}
	return true, do()
}

func (k *Keeper) underOwn(files string, do func() error) (done bool, err error) {
	record, err := k.ownRecord(files)
	if err != nil {
		return false, err
	}
	draft, err := k.Dir.Draft(record.Bytes())
	if err != nil {
		return false, err
	}
	defer draft.Discard()
	if err := draft.Link(lock.ActivePrefix + files); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return false, nil
		}
		return false, err
	}
	return true, errors.Join(do(), draft.Withdraw())
}

// ownRecord is that of a lock which this process holds for a moment, under its
// guard throughout. Should it be killed it is found dead at once, as its pid alone
// would not tell: that may be a stranger's by then.
func (k *Keeper) ownRecord(files string) (lock.Record, error) {
	owner, err := process.Of(os.Getpid())
	if err != nil {
		return lock.Record{}, exit.Wrap("own process", err)
	}
	return lock.Record{
		Owner: owner, Token: lock.Token(), Atom: k.atomOf(files),
		Boottime: process.Boottime(), ExpireAfter: policy.DefaultExpireAfter,
	}, nil
}

// atomOf is the atom NAME; the zero Atom where nothing says which it is.
func (k *Keeper) atomOf(files string) name.Atom {
	if a, known := name.Parse(files); known {
		return a
	}
	last, _ := k.Dir.Last(files) // one that cannot be read says nothing
	return last.Memory.Atom
}
