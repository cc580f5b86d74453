// Package lockdir carries the protocol out: it takes an atom, releases it, ends an
// owner that has expired and replaces its lock. What to do is decided by
// package policy; here are the steps that make the decision true while other
// newcomers are at work.
//
// How the exclusion holds. A lock appears under its name whole (link(2) or
// rename(2)) and is removed or replaced only by a holder of flock(2) on its own
// inode after a check, under it, that the name still leads there and that the
// token is the one it read. A newcomer that ends an owner holds this guard from
// before the first signal until its own lock is in place. So: of several
// newcomers at one corpse one replaces it and the others see busy; an owner that
// releases meanwhile finds the guard taken and changes nothing; a newcomer that
// stalled anywhere finds, when it goes on, that the name or the token has
// changed, and looks again.
package lockdir

import (
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/runlog"
)

// Locker takes and releases the atoms of one lock directory. Nothing in it
// changes, so it may be used by several goroutines.
type Locker struct {
	Dir *lockfile.Dir
	locker.Recorder
}

var _ locker.Locker = (*Locker)(nil)

// Open opens the lock directory at path, making it on first use; log may be nil.
func Open(path string, log *runlog.Log) (*Locker, error) {
	dir, err := lockfile.Create(path)
	if err != nil {
		return nil, err
	}
	return &Locker{Dir: dir, Recorder: locker.Recorder{Log: log}}, nil
}

// Linger is false: what lives of the job keeps its lock by itself.
func (l *Locker) Linger(error, func() bool) bool { return false }

// view is what was found of an atom in the directory at one moment.
type view struct {
	locker.View
	active *lockfile.Active // nil: none
	noLast bool             // there is no last lock yet
}

// close lets go of the active lock's file, and of its guard.
func (v *view) close() {
	if v.active != nil {
		v.active.Close()
	}
}

func (v *view) situation() policy.Situation {
	return policy.Situation{Last: v.Last, Active: v.Active, TickUsed: v.TickUsed}
}
