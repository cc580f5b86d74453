// Package store carries an atom beyond one machine: its two locks live in a
// store that several machines reach, and a locksmith tends them there (Burke,
// "Resource Locking over Networks", 2002). What to do is decided by package
// policy, as in a lock directory; here is what makes the decision true where no
// process table reaches.
//
// A locksmith holds an atom on a lease. It renews the lease every third of it.
// Where two thirds have passed without a renewal it ends the job, so that the
// job is gone before the lease is, and before anybody else can hold the atom. A
// guard, a process of its own, does the same for a locksmith that has been
// killed or stopped.
//
// What is assumed: the clock that counts the lease in the store and the
// boottime clock of the owner's machine run at about the same rate, and KILL ends
// a process at once: KILL is sent a fifth of the lease before it is over, by the
// guard a twelfth. The time
// that the clocks show matters to IfElapsed and to ages only. A machine that is
// suspended, or a process that KILL does not end, can outlive its lease: where
// that must do no harm, the job hands on its fence (ADLOCK_FENCE).
package store

import (
	"context"
	"errors"
	"time"

	"adlock/lib/lock"
)

// DefaultLease is how long the store keeps an atom for a locksmith that has
// fallen silent.
const DefaultLease = 15 * time.Second

// Store keeps the locks of atoms. It is used for one atom at a time.
type Store interface {
	// Look reads both locks of an atom and writes nothing.
	Look(ctx context.Context, files string) (Sight, error)

	// Enter asks for a place at the atom, under the record, on a lease of at
	// least that length, and looks once more from there. Where somebody is in the
	// way there is no place (nil) for one who does not want to stand in line.
	Enter(ctx context.Context, files string, record Record, lease time.Duration, line bool) (Place, Sight, error)

	// String is the store's address, for messages: without a password.
	String() string

	Close() error
}

// Place is what one newcomer has at an atom: the atom, or a place in the line
// for it, until Leave or until the lease has run out. Its calls may come from
// several goroutines.
type Place interface {
	// Look looks at the locks from here.
	Look(ctx context.Context) (Sight, error)

	// Note puts another record in place of the one there is, and looks.
	// ErrGone where the place is lost.
	Note(ctx context.Context, record Record) (Sight, error)

	// Await returns once it is worth looking again: whoever is in front of this
	// place has left it, or ctx is done, which is no error.
	Await(ctx context.Context) error

	// Ask asks the owner of the acquisition token to end its job, with pause
	// between the signals.
	Ask(ctx context.Context, token string, pause time.Duration) error

	// Asked returns when somebody has asked this owner to end its job, with the
	// pause; or with an error, once ctx is done.
	Asked(ctx context.Context) (pause time.Duration, err error)

	// Pass removes the owner in front of this place, which is known to be dead,
	// and stamps the last lock for it; without a stamp it never ran.
	Pass(ctx context.Context, token string, stamp *Last) error

	// Renew proves that the place is still held and begins the lease anew, at
	// the latest when Renew was called. ErrGone where it is lost.
	Renew(ctx context.Context) error

	// Lease is the length of the lease that the store has granted.
	Lease() time.Duration

	// Fence is a number that only grows from one owner of the atom to the next.
	Fence() uint64

	// Leave gives the place up. With a stamp the atom has completed: both in one
	// step. ErrGone where the place was lost before; nothing is stamped then.
	Leave(ctx context.Context, stamp *Last) error
}

// ErrGone says that the lease has run out, or that somebody has removed the lock.
var ErrGone = errors.New("the lease is gone")

// ErrShared says that a store cannot have many readers.
var ErrShared = errors.New("many readers at once are not offered here")

// Sight is what is to be seen of an atom at one moment.
type Sight struct {
	Now  time.Time // by the clock that Last was stamped by
	Last Last

	Held  bool // somebody is in the way; the rest is about the first of them
	Owner Record
	Age   time.Duration // since it came to own the atom
	Dead  bool          // its lease has run out, and its lock is still there
	Bare  bool          // it has not said who it is yet, or never will
}

// Last is the last lock: when the atom last completed.
type Last struct {
	lock.Last
	Token string // of the acquisition that completed
}
