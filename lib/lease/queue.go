package lease

import (
	"context"
	"errors"
	"time"

	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
)

type queue struct {
	*Locker
	r    *locker.Request
	wait locker.Waiting
	held *heldLease
	seen Snapshot

	noted bool     // the record of the place says that it waits
	asked *request // the owner that was asked to make way, or was passed; nil: none
}

type request struct {
	view  locker.View
	step  policy.Step
	stamp string        // the token of the stamp that will follow
	last  string        // the token of the last lock when the owner was asked
	until time.Duration // boottime by which the owner must have made way
	due   bool          // this newcomer may have to report the end of that owner (report)
}

// stand waits until the place owns the atom or is denied it; ErrGone if the place was lost or Locker.Context is done.
func (q *queue) stand() (locker.Outcome, error) {
	outcome, err := q.advance()
	if err != nil && q.held.ctx.Err() != nil {
		err = ErrGone
	}
	return outcome, err
}

func (q *queue) advance() (locker.Outcome, error) {
	for {
		v, err := q.view(q.r, &q.seen)
		if err != nil {
			return locker.Outcome{}, err
		}
		q.forgive(&v)
		q.report()
		d := decide(q.r, &v)
		switch d.Step {
		case policy.Acquire:
			if err := q.won(); err != nil {
				return locker.Outcome{}, err
			}
			return q.held.acquired(), nil
		case policy.TooSoon:
			return q.r.Denied(d, &v), nil
		case policy.Expire:
			if outcome, err := q.expire(&v); err != nil {
				return outcome, err
			}
		case policy.Reclaim, policy.Unempty:
			if err := q.pass(d.Step, &v); err != nil {
				return locker.Outcome{}, err
			}
			continue
		default:
			if (q.wait.Left() <= 0 || d.Outdated()) && !q.isMakingWay() {
				return q.r.Denied(d, &v), nil
			}
		}
		if err := q.await(q.r.Denied(d.With(policy.Busy), &v)); err != nil {
			return locker.Outcome{}, err
		}
	}
}

func (q *queue) isMakingWay() bool {
	return q.asked != nil && q.seen.Held && q.seen.Owner.Token == q.asked.view.Record.Token
}

// forgive puts the earlier last lock back into v if the present one was stamped by an owner that this newcomer
// asked to make way, or by this newcomer for a dead owner: that stamp must not deny the newcomer the atom.
func (q *queue) forgive(v *locker.View) {
	if q.asked != nil && q.seen.Last.Token == q.asked.stamp {
		v.Last = q.asked.view.Last
	}
}

// won starts the watchdog for a place that is first now. If the record says that the place waits, won writes into
// the record that the place owns the atom from now on. The job waits for that write in a store without a queue, or
// if the job has an IfElapsed: if such a job crashes, its record must show that it ran.
func (q *queue) won() error {
	q.held.startWatchdog()
	if !q.noted {
		return nil
	}
	own := &q.held.record
	own.Taken = time.Now()
	now := q.r.Record()
	own.Monotonic, own.Boottime, own.Asked = now.Monotonic, now.Boottime, now.Asked
	own.IfElapsed, own.ExpireAfter, own.Source = now.IfElapsed, now.ExpireAfter, now.Source
	if own.IfElapsed == 0 && q.held.place.InLine() {
		// If the store cannot be written, the lease is not renewed either: refresh deals with that.
		q.held.running.Go(q.held.keepNoting)
		return nil
	}
	return q.patiently(q.held.note)
}

// patiently asks until the store answers, or outlast returns an error.
func (q *queue) patiently(ask func(context.Context) error) error {
	for {
		err := q.ask(q.held.ctx, ask)
		if err == nil {
			return nil
		}
		if err = q.outlast(err); err != nil {
			return err
		}
	}
}

// report reports that an owner has made way, or was dead. Of several newcomers, one reports it: for a dead
// owner, even one that was asked to make way, the newcomer that has stamped for the owner; for an owner that
// made way, the newcomer that asked first or, in a store without a queue, the next owner.
func (q *queue) report() {
	a := q.asked
	switch {
	case a == nil || !a.due || q.isMakingWay():
	case a.step == policy.Reclaim:
		if q.seen.Last.Token == a.stamp {
			a.due = false
			q.Replaced(q.r, a.step, &a.view)
		}
	case q.held.place.InLine() || q.isNext():
		a.due = false
		if !q.seen.Held || q.seen.Last.Token != q.seen.Owner.Token {
			q.Replaced(q.r, a.step, &a.view)
		}
	}
}

// isNext reports whether this place is first, and no other run has completed since the owner was asked.
func (q *queue) isNext() bool {
	last := q.seen.Last.Token
	return !q.seen.Held && (last == q.asked.stamp || last == q.asked.last)
}

// expire asks an expired owner to end its job. If the owner has neither ended its job nor lost its lease in
// time, or has recorded that it cannot end the job, expire returns the outcome Stuck with its error.
func (q *queue) expire(v *locker.View) (locker.Outcome, error) {
	if why := q.seen.Owner.Stuck; why != "" {
		return q.r.Stuck(locker.Title(q.r.Atom), v, errors.New(why), "")
	}
	if q.isMakingWay() {
		if process.Boottime() > q.asked.until {
			return q.r.Stuck(locker.Title(q.r.Atom), v, errors.New("its locksmith on "+q.seen.Owner.Node+" neither ends it nor lets go"), "")
		}
		return locker.Outcome{}, nil
	}
	q.asked = &request{
		view: *v, step: policy.Expire, stamp: q.seen.Owner.Token, last: q.seen.Last.Token,
		until: process.Boottime() + 3*(q.r.Pause+time.Second) + 2*q.seen.Owner.Lease + q.question(),
	}
	q.Expiring(q.r, v)
	ctx, cancel := context.WithTimeout(q.held.ctx, q.question())
	defer cancel()
	first, err := q.held.place.Ask(ctx, q.seen.Owner.Token, q.r.Pause)
	q.asked.due = first
	return locker.Outcome{}, err
}

// pass removes the place of a dead owner, and stamps for the owner if its record says that it ran. It also
// removes a place without a whole record. If the owner had released before it died, its own stamp counts: an
// owner that was asked to make way has then done so.
func (q *queue) pass(step policy.Step, v *locker.View) error {
	ctx, cancel := context.WithTimeout(q.held.ctx, q.question())
	defer cancel()
	asked, owner := q.asked, q.seen.Owner.Token
	var stamp *Last
	switch {
	case step == policy.Unempty:
		q.Emptied(q.r, v)
	case !q.seen.Owner.Taken.IsZero(): // otherwise the owner only waited, or ran without an IfElapsed (won)
		q.asked = &request{view: *v, step: step, due: true}
		stamp = q.held.stamp()
		stamp.keep(q.seen.Last)
		stamp.Completed, stamp.Node = time.Now(), q.seen.Owner.Node
		stamp.Memory.Started = stamp.Completed.Add(-q.seen.Age - q.seen.Owner.Slept() - q.seen.Owner.Asked)
		q.asked.stamp = stamp.Token
	}
	err := q.held.place.Pass(ctx, q.seen.Owner.Token, stamp)
	if err == nil {
		q.seen, err = q.held.place.Look(ctx)
	}
	if err == nil && q.seen.Last.Token == owner {
		q.asked = asked
	}
	return err
}

// await notes in the record that the place waits, shows busy, waits for a change in front, and reads the locks.
// If this waiter is next, its watchdog starts ahead, so that the job need not wait for the watchdog.
func (q *queue) await(busy locker.Outcome) error {
	if !q.noted {
		q.held.record.Taken = time.Time{}
		if err := q.patiently(q.held.note); err != nil {
			return err
		}
		q.noted = true
	}
	q.show(busy)
	ctx, cancel := context.WithTimeout(q.held.ctx, q.most(busy))
	err := q.held.place.Await(ctx, q.held.startWatchdog)
	cancel()
	if err != nil {
		err = q.outlast(err)
	}
	if err != nil {
		return err
	}
	return q.patiently(func(ctx context.Context) (err error) {
		q.seen, err = q.held.place.Look(ctx)
		return err
	})
}

// show shows at the terminal what the place waits for. Unless an owner makes way, it also logs the wait, calls
// Waits, and reports an overdue owner.
func (q *queue) show(busy locker.Outcome) {
	if q.isMakingWay() {
		q.r.StatusLine.Show(func() string { return locker.Title(q.r.Atom) + ": " + busy.Owner() + " was asked to end its job" })
		return
	}
	if q.seen.Owner.Taken.IsZero() {
		busy.Recheck = 0
	}
	q.Locker.show(q.r, q.wait, busy)
}

func (q *queue) most(busy locker.Outcome) time.Duration {
	if q.isMakingWay() {
		return min(q.held.record.Lease, max(q.asked.until-process.Boottime(), time.Second))
	}
	most := q.wait.Left()
	if recheck := busy.Recheck; recheck > 0 {
		most = min(most-time.Millisecond, recheck) + time.Millisecond
	}
	return max(most, time.Millisecond)
}

// outlast pauses and returns nil if err is transient trouble with the store and the newcomer may wait
// longer. Otherwise it returns err, or ErrGone if the place is lost or Locker.Context is done.
func (q *queue) outlast(err error) error {
	if q.held.ctx.Err() != nil {
		return ErrGone
	}
	if !isTransient(err) || errors.Is(err, ErrGone) || q.wait.Left() <= 0 {
		return err
	}
	time.Sleep(min(time.Second, q.wait.Left()))
	return nil
}
