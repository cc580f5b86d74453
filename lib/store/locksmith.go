package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"adlock/lib/atom"
	"adlock/lib/exit"
	"adlock/lib/limit"
	"adlock/lib/lock"
	"adlock/lib/name"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/runlog"
)

// patience is how long one question to the store may take before it counts as
// unreachable.
const patience = 5 * time.Second

// Locksmith takes and releases atoms of a store: what atom.Keeper is for a lock
// directory. It holds one atom at a time, and is used by one goroutine.
type Locksmith struct {
	Store Store
	Log   *runlog.Log
	Lease time.Duration // 0: DefaultLease

	// Context, when it is done, ends the waiting for an atom. May be nil.
	Context context.Context

	// Ancestor says whether a process of this machine is an ancestor of the one
	// that asks, where that is not this process. May be nil.
	Ancestor func(pid int) bool

	held *tenure
}

// RecordSignal tells of a signal that the owner sent to its own job.
func (l *Locksmith) RecordSignal(r *atom.Request, s process.Signalled) {
	l.scribe().RecordSignal(r, s)
}

func (l *Locksmith) scribe() atom.Scribe { return atom.NewScribe(l.Log) }

func (l *Locksmith) context() context.Context {
	if l.Context == nil {
		return context.Background()
	}
	return l.Context
}

func (l *Locksmith) lease() time.Duration {
	if l.Lease <= 0 {
		return DefaultLease
	}
	return l.Lease
}

// Take takes the atom or says why not, as atom.Keeper does. An owner that has
// expired is asked to end its job; LeaveExpired means nothing here.
func (l *Locksmith) Take(r atom.Request) (atom.Outcome, error) {
	if err := r.Atom.Check(); err != nil {
		return atom.Outcome{}, err
	}
	if r.Auto != (atom.Auto{}) {
		return atom.Outcome{}, exit.New(exit.Usage, l.Store.String(), "limits are not learned (auto) in a store beyond this machine")
	}
	for wait := atom.NewWaiting(&r); ; {
		outcome, err := l.attempt(&r, wait)
		if gone := l.context().Err(); gone != nil && outcome.Verdict != atom.Acquired {
			return atom.Outcome{}, exit.Wrap(l.Store.String(), gone)
		}
		if errors.Is(err, ErrGone) {
			continue // the place in the line was lost: a new one is needed
		}
		if err == nil && wait.Worthwhile(outcome) {
			time.Sleep(l.nap(wait, outcome))
			continue
		}
		l.scribe().Denied(&r, outcome, err, wait.Spent())
		return outcome, err
	}
}

// nap is for what nobody can wait for in a line: a slot, the time to pass.
func (l *Locksmith) nap(wait atom.Waiting, o atom.Outcome) time.Duration {
	nap := 200*time.Millisecond + rand.N(800*time.Millisecond)
	if o.Verdict == atom.TooSoon {
		nap = o.Recheck() + time.Millisecond
	}
	return min(nap, wait.Left())
}

// attempt is figure 3 of the 1997 paper; the denials that are cheap come before
// anything is written.
func (l *Locksmith) attempt(r *atom.Request, wait atom.Waiting) (atom.Outcome, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	seen, err := l.Store.Look(ctx, r.Atom.Name())
	if err != nil {
		return atom.Outcome{}, err
	}
	v, err := l.view(r, &seen)
	if err != nil {
		return atom.Outcome{}, err
	}
	if v.Last.Future {
		l.scribe().Clock(r, &v)
	}
	step := policy.Decide(r.Limits, v.Last, v.Active)
	if step == policy.TooSoon || step == policy.Busy && wait.Left() <= 0 && !r.Shared {
		return l.deny(r, step, &seen, &v), nil
	}
	return l.stand(r, wait, step)
}

// stand takes a place at the atom, and keeps it where the atom is won.
func (l *Locksmith) stand(r *atom.Request, wait atom.Waiting, step policy.Step) (atom.Outcome, error) {
	line := wait.Left() > 0 || step != policy.Acquire && step != policy.Busy
	record, err := newRecord(r, l.lease())
	if err != nil {
		return atom.Outcome{}, err
	}
	t, seen, err := l.enter(r, record, line, step == policy.Acquire)
	if err != nil {
		return atom.Outcome{}, err
	}
	if t == nil { // somebody was faster
		v, err := l.view(r, &seen)
		return l.deny(r, policy.Busy, &seen, &v), err
	}
	q := queue{Locksmith: l, r: r, wait: wait, tenure: t, seen: seen}
	outcome, err := q.stand()
	if err == nil && outcome.Verdict == atom.Acquired {
		outcome, err = l.takeSlot(r, t, outcome)
	}
	if err == nil && outcome.Verdict == atom.Acquired {
		err = t.guard.ready()
	}
	if err != nil || outcome.Verdict != atom.Acquired {
		t.abandon()
		return outcome, err
	}
	l.held = t
	l.scribe().Acquired(r, t.record.Record)
	return outcome, nil
}

func newRecord(r *atom.Request, lease time.Duration) (Record, error) {
	node, err := NodeName()
	return Record{
		Record: lock.Record{
			Owner: r.Owner, Job: r.Job, Token: lock.Token(), Atom: r.Atom,
			Boottime: process.Boottime(), IfElapsed: r.Limits.IfElapsed, ExpireAfter: r.Limits.ExpireAfter,
			Supervised: r.Supervised, Patience: r.Patience, Slots: r.Slots, FromStart: r.FromStart, Shared: r.Shared,
		},
		Node: node, Taken: time.Now(), Lease: lease,
	}, err
}

// view is what policy decides on.
func (l *Locksmith) view(r *atom.Request, seen *Sight) (atom.View, error) {
	if err := l.same(seen.Last.Memory.Atom, r); err != nil {
		return atom.View{}, err
	}
	v := r.ViewOf(seen.Last.Last, seen.Now)
	if !seen.Held {
		return v, nil
	}
	v.Active = policy.Active{Held: true, Age: seen.Age, Empty: seen.Bare}
	if seen.Bare {
		return v, nil
	}
	if err := l.same(seen.Owner.Atom, r); err != nil {
		return v, err
	}
	v.Record = seen.Owner.Record
	v.Active.Asked, v.Active.Patience = seen.Owner.ExpireAfter, seen.Owner.Patience
	v.Active.Owner = l.ownerOf(seen)
	if seen.Owner.Taken.IsZero() {
		v.Active.Age = 0 // it waits itself
	}
	return v, nil
}

// same: two atoms whose names are alike only by their checksums must not deny
// each other in silence.
func (l *Locksmith) same(found name.Atom, r *atom.Request) error {
	if found == (name.Atom{}) || found == r.Atom {
		return nil
	}
	return exit.New(exit.System, l.Store.String()+" "+r.Atom.Name(),
		"is the lock of another atom with the same name: "+found.String()+" (wanted: "+r.Atom.String()+")")
}

// ownerOf: what can be known here counts, be it the owner's death or that it is
// an ancestor; for any other the lease answers.
func (l *Locksmith) ownerOf(seen *Sight) policy.Owner {
	if seen.Dead {
		return policy.Dead
	}
	switch owner := atom.OwnerOf(seen.Owner.Record); {
	case owner == policy.Dead, owner == policy.Ancestor:
		return owner
	case owner == policy.Lives && l.Ancestor != nil && l.Ancestor(seen.Owner.Owner.PID):
		return policy.Ancestor
	case seen.Owner.Taken.IsZero():
		return policy.Untouched
	}
	return policy.Lives
}

func (l *Locksmith) deny(r *atom.Request, step policy.Step, seen *Sight, v *atom.View) atom.Outcome {
	outcome := r.Deny(step, v)
	if step == policy.Busy && seen.Held && seen.Owner.Taken.IsZero() {
		outcome.Reason = "busy: others wait for it"
	}
	return outcome
}

// takeSlot takes one of the program's slots, where the request limits them, on a
// lease of its own. Atoms that one owner nests share one slot.
func (l *Locksmith) takeSlot(r *atom.Request, t *tenure, acquired atom.Outcome) (atom.Outcome, error) {
	for n := 1; n <= r.Slots; n++ {
		taken, err := l.trySlot(r, t, r.Atom.Slot(n))
		if taken || err != nil {
			return acquired, err
		}
	}
	if r.Slots == 0 {
		return acquired, nil
	}
	return atom.Outcome{Verdict: atom.Full, Reason: "full: " + strconv.Itoa(r.Slots) + " atoms of " + r.Atom.Program + " are running"}, nil
}

func (l *Locksmith) trySlot(r *atom.Request, t *tenure, files string) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	seen, err := l.Store.Look(ctx, files)
	if err != nil || seen.Held && seen.Owner.Owner.Same(r.Owner) {
		return err == nil, err
	}
	if seen.Held {
		return false, nil
	}
	record := t.record
	record.Shared, record.ExpireAfter, record.Patience = false, limit.Never, 0
	place, seen, err := l.Store.Enter(ctx, files, record, l.lease(), false)
	if err != nil || place == nil {
		return false, err
	}
	t.addSlot(place)
	return true, nil
}

// Release stamps the last lock and gives the atom back, in one step. It keeps
// trying while the lease lasts; a lease that is gone is an error, 75: lost, and
// a store that does not answer one of 69.
func (l *Locksmith) Release(r atom.Return) error {
	t := l.held
	if t == nil {
		return exit.New(exit.Usage, l.Store.String(), "nothing is held")
	}
	l.held = nil
	defer t.close()
	t.guard.dismiss() // the job is over
	var stamp *Last
	if !r.NoStamp {
		stamp = t.stamp()
	}
	err := t.leave(stamp)
	if errors.Is(err, ErrGone) {
		return l.scribe().Lost(l.Store.String(), t.record.Record, err)
	}
	if err == nil {
		l.scribe().Released(r, t.record.Record)
	}
	return err
}

// Linger keeps the atom while what is left of a job that could not be ended
// lives, and tells those who ask why. It returns when alive says no.
func (l *Locksmith) Linger(why error, alive func() bool) {
	t := l.held
	t.answer(why)
	for alive() {
		time.Sleep(time.Second)
	}
}

// Foretell says whether the request would be granted now, and why; it writes
// nothing.
func (l *Locksmith) Foretell(r *atom.Request) (granted bool, reason string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	seen, err := l.Store.Look(ctx, r.Atom.Name())
	if err != nil {
		return false, "", err
	}
	if r.Shared && seen.Held && seen.Owner.Shared {
		seen.Held = false
	}
	v, err := l.view(r, &seen)
	if err != nil {
		return false, "", err
	}
	step := policy.Decide(r.Limits, v.Last, v.Active)
	granted = step != policy.TooSoon && step != policy.Busy
	return granted, policy.Reason(step, r.Limits, v.Last, v.Active), nil
}
