package lockfile

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/lib/sysfile"
)

// GuardGrace is how long an ending may take besides its three pauses (after INT, TERM and KILL). Tests change it.
var GuardGrace = time.Minute

// StandsStill returns an error if the guard's holder is stopped, and was started longer ago than an ending can take.
func StandsStill(holder int, pause time.Duration) error {
	return locker.StandsStill(holder, 3*pause+GuardGrace)
}

// GuardHolder returns the pid that holds the guard; 0 if none does, or it is unknown (another pid namespace, NFS).
func (f *file) GuardHolder() int { return sysfile.FlockHolder(f.fd, false) }

// Watcher returns the newcomer that watches whether the atom's job works (idle.Turn). Its PID is 0 if none is known.
func (d *Dir) Watcher(name atom.Name) locker.Watcher {
	f, err := d.openFile(name.LookLock(), unix.O_RDONLY)
	if err != nil {
		return locker.Watcher{}
	}
	defer f.Close()
	return locker.Watcher{PID: f.GuardHolder(), Since: f.Modified()}
}

// GuardedError is locker.ErrGuarded with the lock and the process that guards it.
type GuardedError struct {
	Path   string
	Holder int // pid of the guard's holder; 0: unknown
	reason string
}

func (e *GuardedError) Error() string { return e.reason }
func (e *GuardedError) Unwrap() error { return locker.ErrGuarded }

// GuardReporting is Guard, but returns ErrGuarded as a GuardedError: status 77 if the holder StandsStill, else 75.
func (a *Active) GuardReporting(wait time.Duration) error {
	return a.ReportGuarded(a.Guard(wait))
}

// ReportGuarded turns ErrGuarded, but no other error, into the error that GuardReporting returns.
func (a *Active) ReportGuarded(err error) error {
	if !errors.Is(err, locker.ErrGuarded) {
		return err
	}
	e := &GuardedError{a.Path(), a.GuardHolder(), err.Error()}
	kind := fault.Denied
	if why := StandsStill(e.Holder, 0); why != nil {
		kind, e.reason = fault.NotPermitted, why.Error()+"; "+locker.ToGoOn(e.Holder)
	}
	return &fault.Error{Kind: kind, Object: e.Path, Err: e}
}
