package store

import (
	"context"
	"errors"
	"time"

	"adlock/lib/atom"
	"adlock/lib/exit"
	"adlock/lib/policy"
	"adlock/lib/process"
)

// queue is one newcomer in front of an atom.
type queue struct {
	*Locksmith
	r      *atom.Request
	wait   atom.Waiting
	tenure *tenure
	seen   Sight

	noted bool     // the place says that it waits
	asked *request // the owner that has been asked to make way
}

// request is what was asked of an owner, and what was known then.
type request struct {
	view  atom.View
	step  policy.Step
	stamp string        // the token of the stamp that follows
	until time.Duration // boottime
}

// stand decides again after each change in front of the place.
func (q *queue) stand() (atom.Outcome, error) {
	for {
		v, err := q.view(q.r, &q.seen)
		if err != nil {
			return atom.Outcome{}, err
		}
		q.forgive(&v)
		step := policy.Decide(q.r.Limits, v.Last, v.Active)
		switch step {
		case policy.Acquire:
			done, err := q.won()
			if done || err != nil {
				return q.acquired(), err
			}
			continue
		case policy.TooSoon:
			return q.deny(q.r, step, &q.seen, &v), nil
		case policy.Expire:
			if outcome, err := q.ask(&v); err != nil {
				return outcome, err
			}
		case policy.Reclaim, policy.Unempty:
			if err := q.pass(step, &v); err != nil {
				return atom.Outcome{}, err
			}
			continue
		default:
			if q.wait.Left() <= 0 && !q.making() {
				return q.deny(q.r, step, &q.seen, &v), nil
			}
		}
		if err := q.await(q.r.Deny(policy.Busy, &v)); err != nil {
			return atom.Outcome{}, err
		}
	}
}

// making: an owner was asked to make way and has not done so yet.
func (q *queue) making() bool {
	return q.asked != nil && q.seen.Held && q.seen.Owner.Token == q.asked.view.Record.Token
}

// forgive: the stamp that follows the end of an owner which we asked to make way
// must not deny us the atom. What was known before still counts.
func (q *queue) forgive(v *atom.View) {
	if q.asked != nil && q.seen.Last.Token == q.asked.stamp {
		v.Last = q.asked.view.Last
	}
}

// won: nobody is in front any more. A place that has waited says so first, as
// its age begins now, and looks again while it is sure to be the owner.
func (q *queue) won() (done bool, err error) {
	if !q.noted {
		return true, nil
	}
	q.noted = false
	q.tenure.record.Taken, q.tenure.record.Boottime = time.Now(), process.Boottime()
	q.seen, err = q.note(q.tenure.record)
	return false, err
}

func (q *queue) acquired() atom.Outcome {
	if q.asked != nil {
		q.scribe().Replaced(q.r, q.asked.step, &q.asked.view)
	}
	return q.tenure.acquired()
}

// ask asks an owner that has expired to end its job. One that neither does so
// nor loses its lease is stuck.
func (q *queue) ask(v *atom.View) (atom.Outcome, error) {
	if why := q.seen.Owner.Stuck; why != "" {
		return q.r.Stuck(q.Store.String(), v, errors.New(why))
	}
	if q.making() {
		if process.Boottime() > q.asked.until {
			return q.r.Stuck(q.Store.String(), v, errors.New("its locksmith on "+q.seen.Owner.Node+" neither ends it nor lets go"))
		}
		return atom.Outcome{}, nil
	}
	q.asked = &request{*v, policy.Expire, q.seen.Owner.Token, process.Boottime() + 3*(q.r.Pause+time.Second) + 2*q.tenure.place.Lease() + patience}
	q.scribe().Expiring(q.r, v)
	ctx, cancel := context.WithTimeout(q.tenure.ctx, patience)
	defer cancel()
	return atom.Outcome{}, q.tenure.place.Ask(ctx, q.seen.Owner.Token, q.r.Pause)
}

// pass goes past an owner that is dead, and stamps for it; or past a lock that
// never said whose it is.
func (q *queue) pass(step policy.Step, v *atom.View) error {
	ctx, cancel := context.WithTimeout(q.tenure.ctx, patience)
	defer cancel()
	var stamp *Last
	if step == policy.Reclaim {
		q.asked = &request{view: *v, step: step}
		stamp = q.tenure.stamp()
		// The stamp has our own token: an owner that had released before it died
		// has left one with its own, and that counts.
		stamp.Completed, stamp.Memory.Started = time.Now(), q.seen.Owner.Taken
		q.asked.stamp = stamp.Token
	} else {
		q.scribe().Emptied(q.r, v)
	}
	if err := q.tenure.place.Pass(ctx, q.seen.Owner.Token, stamp); err != nil {
		return err
	}
	var err error
	q.seen, err = q.tenure.place.Look(ctx)
	return err
}

// await waits until it is worth looking again, and looks.
func (q *queue) await(busy atom.Outcome) error {
	if !q.noted {
		record := q.tenure.record
		record.Taken = time.Time{}
		if _, err := q.note(record); err != nil {
			return err
		}
		q.noted = true
	}
	ctx, cancel := context.WithTimeout(q.tenure.ctx, q.most(busy))
	err := q.tenure.place.Await(ctx)
	cancel()
	if err != nil {
		err = q.outlast(err)
	}
	if err == nil {
		err = q.lookAgain()
	}
	return err
}

// most is how long to wait before looking whatever happens.
func (q *queue) most(busy atom.Outcome) time.Duration {
	if q.making() {
		return min(q.tenure.place.Lease(), max(q.asked.until-process.Boottime(), time.Second))
	}
	most := q.wait.Left()
	if recheck := busy.Recheck(); recheck > 0 {
		most = min(most, recheck+time.Millisecond)
	}
	return max(most, time.Millisecond)
}

// lookAgain looks, for as long as the lease on the place lasts.
func (q *queue) lookAgain() error {
	for {
		ctx, cancel := context.WithTimeout(q.tenure.ctx, patience)
		seen, err := q.tenure.place.Look(ctx)
		cancel()
		if err == nil {
			q.seen = seen
			return nil
		}
		if err = q.outlast(err); err != nil {
			return err
		}
	}
}

// outlast forgives a store that is out of reach for a while, where there is time
// to wait.
func (q *queue) outlast(err error) error {
	if q.tenure.ctx.Err() != nil {
		return ErrGone
	}
	if exit.Code(err) != exit.Unavailable || errors.Is(err, ErrGone) || q.wait.Left() <= 0 {
		return err
	}
	time.Sleep(min(time.Second, q.wait.Left()))
	return nil
}

func (q *queue) note(record Record) (Sight, error) {
	ctx, cancel := context.WithTimeout(q.tenure.ctx, patience)
	defer cancel()
	return q.tenure.place.Note(ctx, record)
}
