package lockdir

import (
	"errors"

	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/policy"
)

// errAgain says that what was seen has changed: look again.
var errAgain = errors.New("the lock has changed")

// guard takes the guard of the active lock in v. The verdict is empty where it is
// held from now on; else another process is at the lock.
func guard(r *locker.Request, v *view) (locker.Outcome, error) {
	err := v.active.Guard(0)
	switch {
	case errors.Is(err, locker.ErrGuarded):
		return guarded(r, v)
	case errors.Is(err, locker.ErrLost):
		err = errAgain
	}
	return locker.Outcome{}, err
}

// guarded is the denial where another process is at the lock: it is being released,
// or its owner is being ended. A guard is never broken, but where its holder
// stands still, and was started longer ago than an ending can take, no person would
// ever get further: that is said.
func guarded(r *locker.Request, v *view) (locker.Outcome, error) {
	return heldUp(r, v, v.active.Path(), v.active.GuardHolder())
}

// heldUp is the denial where the holder of the guard of a lock at path, the owner's or
// that of its slot, is in the way.
func heldUp(r *locker.Request, v *view, path string, holder int) (locker.Outcome, error) {
	if why := lockfile.StandsStill(holder, r.Pause); why != nil {
		return r.Stuck(path, &v.View, why, lockfile.ToGoOn(holder))
	}
	o := r.Denied(policy.Decision{Step: policy.Busy}, &v.View)
	o.Reason = "busy: " + locker.ErrGuarded.Error()
	return o, nil
}
