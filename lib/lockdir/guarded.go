package lockdir

import (
	"errors"

	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
)

var errAgain = errors.New("the lock has changed")

// guard acquires the guard of the lock in v; with --replace it waits for as long as an ending takes. A verdict
// means that another process has the guard, errAgain that the lock has changed.
func guard(r *locker.Request, v *view) (locker.Outcome, error) {
	err := v.active.Guard(0)
	if errors.Is(err, locker.ErrGuarded) && r.Limits.Preempt() {
		err = awaitEnding(r, v)
	}
	switch {
	case errors.Is(err, locker.ErrGuarded):
		return guarded(r, v)
	case errors.Is(err, locker.ErrLost):
		err = errAgain
	}
	return locker.Outcome{}, err
}

func awaitEnding(r *locker.Request, v *view) error {
	r.ShowEndingBy(v.active.GuardHolder())
	defer r.StatusLine.Clear()
	for until := process.Boottime() + 3*r.Pause + lockfile.GuardGrace; ; {
		err := v.active.Guard(guardWait)
		if !errors.Is(err, locker.ErrGuarded) || r.IsGivenUp() || process.Boottime() > until ||
			lockfile.StandsStill(v.active.GuardHolder(), r.Pause) != nil {
			return err
		}
	}
}

// guarded returns the outcome if another process is changing the lock, or has just filled it. adlock breaks no guard:
// the outcome is stuck if the guard's holder is stopped and was started longer ago than an ending can take, else busy.
func guarded(r *locker.Request, v *view) (locker.Outcome, error) {
	return guardBusy(r, v, v.active.Path(), v.active.GuardHolder())
}

func guardBusy(r *locker.Request, v *view, path string, holder int) (locker.Outcome, error) {
	if why := lockfile.StandsStill(holder, r.Pause); why != nil {
		return r.Stuck(path, &v.View, why, locker.ToGoOn(holder))
	}
	return r.Denied(policy.Decision{}.Because(policy.Busy, locker.ErrGuarded.Error()), &v.View), nil
}
