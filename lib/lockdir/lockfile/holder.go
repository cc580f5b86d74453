package lockfile

import (
	"errors"
	"strconv"
	"time"

	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/lib/process"
)

// GuardGrace is the time that an ending may take besides its three pauses. Tests change it.
var GuardGrace = time.Minute

// StandsStill says that the process that holds a guard is stopped, and was started longer ago
// than an ending can take; nil where it is not so, or where the holder is unknown (0).
func StandsStill(holder int, pause time.Duration) error {
	if holder == 0 {
		return nil
	}
	if still, age := process.Still(holder); still && age >= 3*pause+GuardGrace {
		return errors.New("process " + strconv.Itoa(holder) + ", which is changing the lock, is stopped")
	}
	return nil
}

// ToGoOn is the advice for a guard whose holder is stopped.
func ToGoOn(holder int) string { return "to let it go on: kill -CONT " + strconv.Itoa(holder) }

// GuardedError is locker.ErrGuarded with the lock and the process that guards it.
type GuardedError struct {
	Path   string
	Holder int // pid of the guard's holder; 0: unknown
	reason string
}

func (e *GuardedError) Error() string { return e.reason }
func (e *GuardedError) Unwrap() error { return locker.ErrGuarded }

// GuardReporting is Guard with a GuardedError in place of ErrGuarded. Its status is that of a
// denial, or of stuck where the holder is stopped.
func (a *Active) GuardReporting(wait time.Duration) error {
	return a.ReportGuarded(a.Guard(wait))
}

// ReportGuarded is what GuardReporting returns where Guard has returned err.
func (a *Active) ReportGuarded(err error) error {
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
