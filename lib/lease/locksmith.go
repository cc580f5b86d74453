package lease

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/limit"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
)

// questionTimeout is the time allowed for a question to the store; most questions to a Slow store get more.
const questionTimeout = 5 * time.Second

// Slow is a Store for which one question takes many steps: most questions may take as long as a lease.
type Slow interface{ IsSlow() }

// Locker acquires and releases atoms of a store, as lockdir.Locker does in a lock directory. It holds one
// atom at a time. One goroutine uses it, except for Cancelled.
type Locker struct {
	Store Store
	locker.Recorder
	Lease time.Duration // 0: DefaultLease

	// Context, once done, ends the wait for an atom, and a held lease is no longer renewed. A nil Context is never done.
	Context context.Context

	// Ancestor reports whether a process of this machine is an ancestor of the process that wants the atom.
	// Ancestor may be nil if this process itself wants the atom.
	Ancestor func(pid int) bool

	// Waits is called before each wait, with the outcome that denies the atom for now. It is not called if the store
	// is unreachable or full, an owner makes way or is watched (showSilent), or the place was lost. It may be nil.
	Waits func(locker.Outcome)

	held   *heldLease
	stands atomic.Pointer[heldLease] // the place that was entered last
	claims bool                      // the last attempt may have claimed the tick, which would seem used to a new place
	logged bool                      // the runlog has a line that the newcomer waits
	silent bool                      // the owner that denied the last attempt may be dead
}

var _ locker.Locker = (*Locker)(nil)

func (l *Locker) context() context.Context {
	return cmp.Or(l.Context, context.Background())
}

func (l *Locker) question() time.Duration {
	if _, slow := l.Store.(Slow); slow {
		return max(questionTimeout, l.lease())
	}
	return questionTimeout
}

func (l *Locker) lease() time.Duration {
	return cmp.Or(max(0, l.Lease), DefaultLease)
}

// Take acquires the atom or returns why not. It asks an expired owner to end its job, even with LeaveExpired.
func (l *Locker) Take(r locker.Request) (locker.Outcome, error) {
	if err := r.Atom.Check(); err != nil {
		return locker.Outcome{}, err
	}
	defer r.StatusLine.Clear()
	l.logged = false
	for wait := locker.NewWaiting(&r); ; {
		outcome, err := l.attempt(&r, wait)
		if gone := l.context().Err(); gone != nil && (err != nil || outcome.Verdict != locker.Acquired) {
			return locker.Outcome{}, fault.Wrap(l.Store.String(), gone)
		}
		switch {
		case errors.Is(err, ErrGone):
			// The place is lost. If a person has removed all keys, the owner's job runs until its locksmith
			// finds out: without this pause two jobs could run at once.
			Pause(l.context(), l.lease())
		case wait.Left() > 0 && (errors.Is(err, ErrCrowded) || isTransient(err) && !l.claims):
			l.showAway(&r, wait, err)
			Pause(l.context(), l.nap(wait, outcome))
		case err == nil && l.silent && (outcome.Verdict == locker.Busy || outcome.Verdict == locker.Full):
			l.showSilent(&r, outcome)
			Pause(l.context(), l.lease()/30)
		case err == nil && wait.Worthwhile(outcome):
			l.show(&r, wait, outcome)
			Pause(l.context(), l.nap(wait, outcome))
		default:
			l.SeeOverdue(&r, &outcome)
			l.LogIfDenied(&r, outcome, err, wait.Spent())
			return outcome, err
		}
	}
}

func (l *Locker) show(r *locker.Request, wait locker.Waiting, o locker.Outcome) {
	l.logWait(r, o)
	if l.Waits != nil {
		l.Waits(o)
	}
	l.SeeOverdue(r, &o)
	wait.Show(r, o)
}

func (l *Locker) logWait(r *locker.Request, o locker.Outcome) {
	if !l.logged {
		l.Recorder.Waits(r, o)
	}
	l.logged = true
}

func (l *Locker) showAway(r *locker.Request, wait locker.Waiting, err error) {
	l.logWait(r, locker.Outcome{Reason: err.Error()})
	r.StatusLine.Show(func() string {
		return locker.Title(r.Atom) + ": waiting for the store: " + limit.FormatAge(wait.Spent()) + ": " + err.Error()
	})
}

// showSilent shows on a terminal that the newcomer watches an owner that may be dead. A newcomer watches even
// without --wait: otherwise, if the owner is dead, the newcomer's run would be missed.
func (l *Locker) showSilent(r *locker.Request, o locker.Outcome) {
	r.StatusLine.Show(func() string {
		return locker.Title(r.Atom) + ": " + string(o.Verdict) + ", and there is no sign of life: watching for as long as a lease"
	})
}

// Pause waits for d. It returns false if ctx was done first.
func Pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// ask puts one question to the store. If no answer came and this process was stopped while it waited, ask
// puts the question once more: the time for the answer may have passed although the store was not silent.
func (l *Locker) ask(within context.Context, question func(context.Context) error) error {
	began := process.Boottime()
	err := l.try(within, question)
	if wasStopped := process.Boottime()-began > l.question()+time.Second; wasStopped && fault.KindOf(err) == fault.Unavailable {
		err = l.try(within, question)
	}
	return err
}

func (l *Locker) try(within context.Context, question func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(within, l.question())
	defer cancel()
	return question(ctx)
}

// nap returns how long to wait before the next attempt if no queue wakes the newcomer, which waits for a
// slot, for IfElapsed, for the end of a pause, or for the store.
func (l *Locker) nap(wait locker.Waiting, o locker.Outcome) time.Duration {
	nap := 200*time.Millisecond + rand.N(800*time.Millisecond)
	if o.Verdict == locker.Paused {
		nap += 4 * time.Second
	}
	if o.Verdict == locker.TooSoon {
		nap = min(o.Recheck, limit.Never-time.Millisecond) + time.Millisecond
	}
	return min(nap, wait.Left())
}

// Cancelled logs that a signal (its name without SIG) ended the newcomer, and how long it had waited. Cancelled
// gives up the newcomer's place and slots: otherwise the waiters behind would wait until the lease has run out.
// It waits at most a second for the store. Any goroutine may call it.
func (l *Locker) Cancelled(r *locker.Request, signal string, waited time.Duration) {
	l.Recorder.Cancelled(r, signal, waited)
	t := l.stands.Load()
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	go func() {
		defer cancel()
		for _, place := range append(t.slotted(), t.place) {
			_ = place.Leave(ctx, nil) // if this fails, waiters pass the place after its lease
		}
	}()
	<-ctx.Done()
}

// attempt tries to acquire the atom. If its first look denies the atom, it enters a place only to wait for a busy atom.
func (l *Locker) attempt(r *locker.Request, wait locker.Waiting) (locker.Outcome, error) {
	v, silent, err := l.look(r)
	if err != nil {
		return locker.Outcome{}, err
	}
	l.FutureStamp(r, v.Last)
	d := decide(r, &v)
	l.silent = d.Step == policy.Busy && silent
	if v.Pause.Denies() || d.Step == policy.TooSoon || d.Step == policy.Busy && wait.Left() <= 0 {
		return r.Denied(d, &v), nil
	}
	return l.stand(r, wait, d.Step)
}

// look finds out whether this host is paused (newcomers on other hosts are not affected) and, unless that
// denies the atom, reads the atom's locks in the store. silent is true if the owner in the way may be dead.
func (l *Locker) look(r *locker.Request) (v locker.View, silent bool, err error) {
	if v.Pause, err = locker.HostPause(); err == nil && v.Pause.On {
		entries, _, _ := l.List() // if the store does not answer, no job is known
		v.Pause.Inside = locker.InsideJob(entries)
	}
	if err != nil || v.Pause.Denies() {
		return v, false, err
	}
	var seen Snapshot
	err = l.ask(context.Background(), func(ctx context.Context) (err error) {
		seen, err = l.Store.Look(ctx, r.Atom.Name(), r.Shared)
		return err
	})
	if err != nil {
		return v, false, err
	}
	v, err = l.view(r, &seen)
	return v, seen.Silent, err
}

func (l *Locker) stand(r *locker.Request, wait locker.Waiting, step policy.Step) (locker.Outcome, error) {
	line := wait.Left() > 0 || step != policy.Acquire && step != policy.Busy
	own, err := newRecord(r, l.lease())
	if err != nil {
		return locker.Outcome{}, err
	}
	waits := step == policy.Busy
	if waits {
		own.Taken = time.Time{}
	}
	t, seen, err := l.enter(r, own, line, step == policy.Acquire)
	if err != nil {
		return locker.Outcome{}, err
	}
	if t == nil { // another newcomer was faster
		v, err := l.view(r, &seen)
		return r.Denied(decide(r, &v).With(policy.Busy), &v), err
	}
	l.stands.Store(t)
	q := queue{Locker: l, r: r, wait: wait, held: t, seen: seen, noted: waits}
	outcome, err := q.stand()
	if err == nil && outcome.Verdict == locker.Acquired {
		outcome, err = l.takeSlot(r, t, outcome)
	}
	if err == nil && outcome.Verdict == locker.Acquired {
		err = t.watchdogReady()
	}
	outcome, err = r.ClaimTick(outcome, err, func() (bool, error) { return t.claimTick(r) })
	if err == nil && outcome.Verdict == locker.Acquired {
		err = t.begin(r.WatchLength())
	}
	if err != nil || outcome.Verdict != locker.Acquired {
		t.abandon(err)
		l.claims = t.tick.Asked()
		return outcome, err
	}
	l.held, t.before = t, q.seen.Last
	l.learnFromAsking(r, t)
	outcome.ExpireAfter, outcome.Watch = r.Limits.ExpireAfter, r.WatchLength()
	l.Acquired(r, t.record.Record)
	return outcome, nil
}

func newRecord(r *locker.Request, lease time.Duration) (Record, error) {
	node, err := NodeName()
	return Record{
		Record: r.Record(),
		Node:   node, Taken: time.Now(), Lease: lease,
	}, err
}

func (l *Locker) view(r *locker.Request, seen *Snapshot) (locker.View, error) {
	object := l.Store.String() + " " + string(r.Atom.Name())
	real := time.Now()
	now := r.Clock(real)
	v := locker.View{}
	if err := v.SeeLast(r, object, seen.moved(real), now, func() (bool, error) { return l.usedTick(r) }); err != nil {
		return locker.View{}, err
	}
	if !seen.Held {
		return v, nil
	}
	if seen.Bare {
		v.Active = policy.Active{Held: true, Age: seen.Age, Empty: true}
		return v, nil
	}
	v.Active = policy.Active{Held: true, Age: max(0, seen.Age-now.Real.Sub(now.Effective()))}
	if err := r.Atom.CheckFound(object, seen.Owner.Atom); err != nil {
		return v, err
	}
	l.describe(&v, seen)
	v.Active.Newer = !seen.Owner.Taken.IsZero() && r.IsOlder(v.Record, v.Active.Age) // a waiter's age is not known
	return v, nil
}

func (l *Locker) describe(v *locker.View, seen *Snapshot) {
	v.SeeOwner(seen.Owner.Record, l.ownerOf(seen))
	v.Node, v.Silent, v.Active.Remote, v.Active.Node = seen.Owner.Node, seen.Silent, true, seen.Owner.Node
	v.Active.Idle, v.Active.Work = seen.Owner.Idle, seen.Owner.Work
	if seen.Owner.Taken.IsZero() {
		v.Active.Age = 0 // the process in front is itself a waiter
	}
}

// ownerOf returns what this machine can know of the owner: that it is dead, or an ancestor of the
// newcomer. For any other owner the lease decides. The machine id does not count: cloned machines
// have one id, so an owner in another boot may live on another machine.
func (l *Locker) ownerOf(seen *Snapshot) policy.Owner {
	if seen.Lapsed {
		return policy.Gone
	}
	job := seen.Owner.KnownJob(-1)
	job.Owner.Machine = ""
	switch owner := locker.OwnerOf(job); {
	case owner == policy.Gone, owner == policy.Ancestor:
		return owner
	case owner == policy.Lives && l.Ancestor != nil && l.Ancestor(seen.Owner.Owner.PID):
		return policy.Ancestor
	case seen.Owner.Taken.IsZero():
		return policy.Waiter
	}
	return policy.Lives
}

func decide(r *locker.Request, v *locker.View) policy.Decision {
	return policy.Decide(r.Terms(), policy.Situation{Last: v.Last, Active: v.Active, TickUsed: v.TickUsed, Pause: v.Pause})
}

// takeSlot acquires a slot, on a lease of its own, if the request limits the slots. It returns acquired or,
// if all slots are held, the outcome Full. An owner's nested atoms share one slot.
func (l *Locker) takeSlot(r *locker.Request, t *heldLease, acquired locker.Outcome) (locker.Outcome, error) {
	full := r.Full()
	for n := 1; n <= r.Slots; n++ {
		taken, err := l.trySlot(r, t, r.Atom.Slot(n), &full)
		if taken || err != nil {
			return acquired, err
		}
	}
	if r.Slots == 0 {
		return acquired, nil
	}
	return full, nil
}

func (seen *Snapshot) isPassable() bool {
	bare := policy.Situation{Active: policy.Active{Held: true, Age: seen.Age, Empty: true}}
	return seen.Lapsed || seen.Bare && policy.Decide(policy.Terms{}, bare).Step == policy.Unempty
}

func (l *Locker) trySlot(r *locker.Request, t *heldLease, name atom.Name, full *locker.Outcome) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), l.question())
	defer cancel()
	seen, err := l.Store.Look(ctx, name, false)
	if err != nil || seen.Held && seen.Owner.Owner.Same(r.Owner) {
		return err == nil, err
	}
	if seen.Held && !seen.isPassable() {
		l.silent = l.silent || seen.Silent
		v := locker.View{Active: policy.Active{Held: true, Age: seen.Age}}
		l.describe(&v, &seen)
		r.TakenBy(full, &v)
		return false, nil
	}
	own := t.record
	own.Shared, own.ExpireAfter, own.Source, own.Patience = false, limit.Never, policy.None, 0
	place, seen, err := l.Store.Enter(ctx, name, own, seen.isPassable())
	if place != nil && seen.isPassable() {
		if err = place.Pass(ctx, seen.Owner.Token, nil); err == nil {
			seen, err = place.Look(ctx)
		}
	}
	if err == nil && place != nil && !seen.Held {
		t.addSlot(place)
		return true, nil
	}
	if place != nil {
		_ = place.Leave(ctx, nil) // if this fails, newcomers pass the place after its lease
	}
	return false, err
}

// Release stamps the last lock (not with r.NoStamp) and releases the atom, and retries while the lease lasts.
// It returns fault.Denied (lost) if the lease was lost, and fault.Unavailable if the store does not answer.
func (l *Locker) Release(r locker.ReleaseRequest) error {
	t := l.held
	if t == nil {
		return fault.New(fault.Usage, l.Store.String(), "nothing is held")
	}
	l.held = nil
	defer t.close()
	if t.dueIn(6) == 0 { // no time is left to ask the store: another may have held the atom
		t.lose(errStoodStill)
	}
	reported := (!t.ended.Load() || t.why.Load() == errStoodStill) && t.watchdog.LeaveReportIfActed()
	if t.ended.Load() && !reported {
		t.watchdog.ReportsWhy() // close dismisses it
	} else {
		t.watchdog.Dismiss() // the job is over
	}
	r.Token, r.Asked = t.record.Token, t.asked.Load()
	left, err := t.leave(t.leaves(r))
	if reported {
		return fault.Untold{Err: fault.New(fault.Denied, locker.Title(t.record.Atom), "lost: "+errStoodStill.Error())}
	}
	if t.ended.Load() || errors.Is(err, ErrGone) {
		return l.Lost(locker.Title(t.record.Atom), r, t.record.Atom, &t.record.Record, t.lost(err))
	}
	if left {
		l.Released(r, t.record.Record, err)
	}
	return err
}

var errStoodStill = errors.New("the locksmith stood still for most of its lease")

// OwnStuck reports that this owner cannot end its job, and records why for newcomers. A job that then ends by
// itself did not end at their request.
func (l *Locker) OwnStuck(r *locker.Request, token string, age time.Duration, why error) {
	l.Recorder.OwnStuck(r, token, age, why)
	if t := l.held; t != nil {
		t.asked.Store(false)
		t.answer(why)
	}
}

// DryRun returns what Take would decide now. It takes no place and no slot.
func (l *Locker) DryRun(r *locker.Request) (policy.Decision, error) {
	v, _, err := l.look(r)
	if err != nil || v.Pause.Denies() {
		return decide(r, &v), err
	}
	ctx, cancel := context.WithTimeout(context.Background(), l.question())
	defer cancel()
	s := policy.Situation{Last: v.Last, Active: v.Active, TickUsed: v.TickUsed}
	for n := 1; n <= r.Slots; n++ {
		slot, err := l.Store.Look(ctx, r.Atom.Slot(n), false)
		if err != nil {
			return policy.Decision{}, err
		}
		s.Slots = append(s.Slots, policy.Active{Held: slot.Held && !slot.isPassable() && !slot.Silent, Owner: policy.Lives})
	}
	return v.Foresee(policy.Decide(r.Terms(), s)), nil
}
