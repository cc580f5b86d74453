// Package atom carries the protocol out: it takes an atom, releases it, ends an
// owner that has expired and replaces its lock. What to do is decided by
// package policy; here are the steps that make the decision true while other
// newcomers are at work.
//
// How the exclusion holds. A lock appears under its name whole (link(2) or
// rename(2)) and is removed or replaced only by a holder of flock(2) on its own
// inode who has checked, under it, that the name still leads there and that the
// token is the one it read. A newcomer that ends an owner holds this guard from
// before the first signal until its own lock is in place. So: of several
// newcomers at one corpse one replaces it and the others see busy; an owner that
// releases meanwhile finds the guard taken and changes nothing; a newcomer that
// stalled anywhere finds, when it goes on, that the name or the token has
// changed, and looks again.
package atom

import (
	"os"
	"time"

	"adlock/lib/exit"
	"adlock/lib/learn"
	"adlock/lib/lock"
	"adlock/lib/name"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/runlog"
)

// Request says which atom is wanted, by whom, and on what terms.
type Request struct {
	Atom   name.Atom
	Limits policy.Limits
	Auto   Auto

	Owner      process.Identity // whose death frees the lock
	Job        process.Identity // a gated job (lock.Record); PID 0: none
	Supervised bool
	Patience   time.Duration // lock.Record

	// End is told, with the pause between the signals, that the owner's job has to
	// end: by a store beyond this machine, where nobody else can end it. May be nil.
	End chan<- time.Duration

	Slots     int       // at most so many atoms of the program at once; 0: any number
	Now       time.Time // the pass clock; zero: read the clock
	FromStart bool      // IfElapsed counts from the start of the last run

	Shared bool // others that say so too may hold the atom at the same time

	Wait        time.Duration // wait at most so long for a busy or full atom
	WaitElapsed bool          // and for one that was asked for too soon
	WaitSince   time.Duration // boottime at which the waiting began; 0: now

	Pause        time.Duration // between the signals to an owner that has expired
	LeaveExpired bool          // do not end it: the verdict is Expired

	Starving int // so many denials in a row are said aloud; 0: none are

	learned learn.State // what Auto was resolved with
}

// Verdict is the answer to a request.
type Verdict string

// The verdicts.
const (
	Acquired Verdict = "acquired"
	Busy     Verdict = "busy"
	TooSoon  Verdict = "too-soon"
	Full     Verdict = "full"
	Stuck    Verdict = "stuck"   // with an error: the owner has expired and cannot be ended
	Expired  Verdict = "expired" // only where LeaveExpired asks for it
)

// Outcome is a verdict with its reason, and the token where the atom was taken.
type Outcome struct {
	Verdict Verdict
	Reason  string
	Token   string
	Fence   string // a number that only grows from owner to owner; "": not offered

	ExpireAfter time.Duration // in force, where the atom was taken

	again   bool          // what was seen has changed: look again
	endless bool          // to wait for it would have no end: it waits for this newcomer
	blocker int           // pid of the owner in the way, for waiting; 0: unknown
	recheck time.Duration // when waiting helps at the latest: the owner expires, the atom is due
	found   runlog.Event  // owner, age: for the record
}

// Keeper takes and releases the atoms of one lock directory. Nothing in it
// changes, so it may be used by several goroutines.
type Keeper struct {
	Dir *lock.Dir
	Log *runlog.Log // nil: keep no record
}

// OwnedBy returns the identity of the process pid if that is this process or
// one of its ancestors: a lock must belong to somebody whose death means that
// the work is over. pid 0 stands for the parent; the parent 1 is refused unless
// it was named, as it means that the asker has died already.
func OwnedBy(pid int) (process.Identity, error) {
	if pid == 0 {
		if pid = os.Getppid(); pid == 1 {
			return process.Identity{}, exit.New(exit.Usage, "owner", "the parent process is gone (or is process 1: name it with --owner 1)")
		}
	}
	if !process.IsAncestor(pid) {
		return process.Identity{}, exit.New(exit.Usage, "owner", "is not an ancestor of this process")
	}
	id, err := process.Of(pid)
	return id, exit.Wrap("owner", err)
}
