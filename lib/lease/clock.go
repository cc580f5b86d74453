package lease

import (
	"context"
	"time"

	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/record"
)

// The clocks of machines differ. All times in a last lock are by one clock, so the differences
// between these times are right even if that clock is wrong. The store computes how long ago they
// were.

// completes sets the last lock's times: this run, whose record is r, completes now.
func (l *Last) completes(r Record) {
	l.Completed = time.Now()
	if r.FromStart {
		l.Memory.Started = l.Completed.Add(r.Boottime - process.Boottime() - r.Asked)
	}
}

// MoveTo moves the times of the last lock to another clock, which showed completed when the atom
// completed.
func (l *Last) MoveTo(completed time.Time) {
	if !l.Memory.Started.IsZero() {
		l.Memory.Started = completed.Add(l.Memory.Started.Sub(l.Completed))
	}
	l.Completed = completed
}

// here returns the last lock with its times moved to this machine's clock (a pass clock is a time
// by that clock too), and the moment up to which ages are counted. It asks the store for the time
// only if the request has an IfElapsed.
func (l *Locker) here(r *locker.Request, seen *Snapshot) (record.Last, locker.Moment, error) {
	now := time.Now()
	if r.Limits.IfElapsed == 0 && !r.Auto.IfElapsed {
		return seen.Last.at(now, seen.Now.Sub(seen.Last.Completed)), r.Clock(now), nil
	}
	last, err := l.moved(seen, now)
	return last, r.Clock(now), err
}

// moved returns the last lock with its times moved to this machine's clock, which shows now.
func (l *Locker) moved(seen *Snapshot, now time.Time) (record.Last, error) {
	ctx, cancel := context.WithTimeout(context.Background(), questionTimeout)
	defer cancel()
	ago, err := l.Store.Elapsed(ctx, seen)
	return seen.Last.at(now, ago), err
}

// at returns the last lock with its times moved so that the atom completed ago before now. An atom
// that never completed stays so. A store's clock may count whole seconds, so a run that has just
// completed may seem to lie a little in the future: then it completed now.
func (l Last) at(now time.Time, ago time.Duration) record.Last {
	if ago >= -policy.FutureSlack {
		ago = max(0, ago)
	}
	if !l.Completed.IsZero() {
		l.MoveTo(now.Add(-ago))
	}
	return l.Last
}
