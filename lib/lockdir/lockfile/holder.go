package lockfile

import (
	"errors"
	"strconv"
	"time"

	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/lib/process"
)

// GuardGrace is what an ending may take beside its three pauses. Tests change it.
var GuardGrace = time.Minute

// StandsStill says of the holder of a guard that it is stopped, and for how long an
// ending may take has been there; nil where that is not so, or its pid is not known
// does.
func StandsStill(holder int, pause time.Duration) error {
	if holder == 0 {
		return nil
	}
	if still, age := process.Still(holder); still && age >= 3*pause+GuardGrace {
		return errors.New("process " + strconv.Itoa(holder) + ", which is changing the lock, is stopped")
	}
	return nil
}

// ToGoOn is what a person may do about a stopped process.
func ToGoOn(holder int) string { return "to let it go on: kill -CONT " + strconv.Itoa(holder) }

// GuardedError is locker.ErrGuarded where it is to be said at which lock.
type GuardedError struct {
	Path   string
	Holder int // of the guard; 0: not known
	reason string
}

func (e *GuardedError) Error() string { return e.reason }
func (e *GuardedError) Unwrap() error { return locker.ErrGuarded }

// GuardAloud is Guard with a GuardedError in place of ErrGuarded, and a status of its
// own: a denial, or stuck where the holder stands still.
func (a *Active) GuardAloud(wait time.Duration) error {
	return a.Aloud(a.Guard(wait))
}

// Aloud is what GuardAloud returns where Guard has returned err.
func (a *Active) Aloud(err error) error {
	if !errors.Is(err, locker.ErrGuarded) {
		return err
	}
	e := &GuardedError{a.Path(), a.GuardHolder(), err.Error()}
	kind := fault.Denied
	if why := StandsStill(e.Holder, 0); why != nil {
		kind, e.reason = fault.NotPermitted, why.Error()+"; "+ToGoOn(e.Holder)
	}
	return &fault.Error{Kind: kind, Object: e.Path, Err: e}
}
