// Package lockdir carries the protocol out: it takes an atom, releases it, ends an expired owner
// and replaces its lock. Package policy decides what to do; the steps here keep that decision
// true while other newcomers are at work.
//
// How the exclusion holds. A lock appears under its name whole (link(2) or rename(2)). It is
// removed or replaced only by a process that holds flock(2) on its inode and has checked, under
// that guard, that the name still leads to the inode and that the token is the one it read. A
// newcomer that ends an owner holds the guard from before the first signal until its own lock is
// in place. So:
//   - if several newcomers find one stale lock, one of them replaces it and the others see
//     busy;
//   - an owner that releases while it is being ended finds the guard taken and changes nothing;
//   - a newcomer that stalled anywhere finds another name or token when it goes on, and looks
//     again.
package lockdir

import (
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/runlog"
)

// Locker takes and releases the atoms of one lock directory. It is immutable, so several
// goroutines may use it.
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

// Linger is false: the survivors of a job hold its lock by themselves.
func (l *Locker) Linger(error, func() bool) bool { return false }

// view is what was seen of an atom in the directory at one moment.
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
