package lease

import (
	"context"
	"time"

	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/record"
)

// Clocks of machines differ. All times in a last lock are by one clock: the differences between
// them are right whatever it shows, and the store is asked how long ago they were.

// completes sets the times of the last lock that the acquisition leaves to now.
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

// here is the last lock by the clock of this machine, like a pass clock, and that clock. If no
// interval is asked for, the store is not asked for the time.
func (l *Locker) here(r *locker.Request, seen *Snapshot) (record.Last, locker.Moment, error) {
	now := time.Now()
	if r.Limits.IfElapsed == 0 && !r.Auto.IfElapsed {
		return seen.Last.at(now, seen.Now.Sub(seen.Last.Completed)), r.Clock(now), nil
	}
	last, err := l.moved(seen, now)
	return last, r.Clock(now), err
}

// moved is the last lock by the clock of this machine, which shows now.
func (l *Locker) moved(seen *Snapshot, now time.Time) (record.Last, error) {
	ctx, cancel := context.WithTimeout(context.Background(), questionTimeout)
	defer cancel()
	ago, err := l.Store.Elapsed(ctx, seen)
	return seen.Last.at(now, ago), err
}

// at is the last lock of an atom that completed that long ago, if ever. A store's clock is known
// to a second only, so a run that has just completed may seem to lie in the future.
func (l Last) at(now time.Time, ago time.Duration) record.Last {
	if ago >= -policy.FutureSlack {
		ago = max(0, ago)
	}
	if !l.Completed.IsZero() {
		l.MoveTo(now.Add(-ago))
	}
	return l.Last
}
