// Package lease carries an atom beyond one machine: its two locks live in a
// store that several machines reach, and a locksmith tends them there (Burke,
// "Resource Locking over Networks", 2002). What to do is decided by package
// policy, as in a lock directory; here is what makes the decision true where no
// process table reaches.
//
// A locksmith holds an atom on a lease, and gives a sign of life every third of it.
// Where two thirds have passed since it sent the last one that went well, it ends the
// job, so that the job is gone before the lease is, and before another can hold
// the atom. A guard, a process of its own, does the same for a locksmith that has been
// killed or stopped.
//
// The process in the way is dead once a newcomer has seen it give no sign of life for the
// whole of the lease by the newcomer's own boottime clock. Nothing else proves a death:
// not that the store has forgotten about the owner, nor what the clocks show.
//
// What is assumed: the boottime clocks of all machines run at about the same rate, and
// KILL ends a process at once: KILL is sent a fifth of the lease before it is over, by
// the guard a twelfth. What time the machines' clocks show does not matter to that.
// IfElapsed is judged by the store's clock (Elapsed), as far as it has one: see etcd and
// ftp. A machine that is suspended, or a process that KILL does not end, can outlive its
// lease: where that must do no harm, the job hands on its fence (ADLOCK_FENCE).
package lease

import (
	"context"
	"errors"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/policy"
	"adlock/lib/record"
)

// DefaultLease is how long the store keeps an atom for a locksmith that has
// fallen silent.
const DefaultLease = 15 * time.Second

// ShortestLease and LongestLease are what one may be: the shortest leaves KILL its
// second in each part of it.
const (
	ShortestLease = 6 * time.Second
	LongestLease  = time.Hour
)

// Store keeps the locks of atoms. It is used for one atom at a time, or to list all.
type Store interface {
	// Look reads both locks of an atom, as a reader (shared) finds them, or
	// a writer, and writes nothing.
	Look(ctx context.Context, name atom.Name, shared bool) (Snapshot, error)

	// Enter asks for a place at the atom, under the record, on a lease of at
	// least that length, and looks once more from there. Where another is in the
	// way there is no place (nil) for a newcomer that does not want to stand in line.
	Enter(ctx context.Context, name atom.Name, record Record, lease time.Duration, line bool) (Place, Snapshot, error)

	// Elapsed is how long before the snapshot the last lock in it was stamped, by the
	// store's idea of time, as far as it has one.
	Elapsed(ctx context.Context, seen *Snapshot) (time.Duration, error)

	// HasTick reports whether the tick of the atom was claimed.
	HasTick(ctx context.Context, name atom.Name, tick policy.Tick) (bool, error)

	// List looks at every atom and slot that the store knows of, in the order of
	// their names. All it may write is what Look may.
	List(ctx context.Context) ([]Listed, error)

	// Remove removes the lock of the acquisition token, whose owner does not live;
	// "": of one without a record. Nothing is stamped. ErrGone where it is
	// not there any more.
	Remove(ctx context.Context, name atom.Name, token string) error

	// String is the store's address, for messages: without a password.
	String() string

	Close() error
}

// Place is what one newcomer has at an atom: the atom, or a place in the line
// for it, until Leave or until the lease has run out. Its calls may come from
// several goroutines.
type Place interface {
	// Look looks at the locks from here.
	Look(ctx context.Context) (Snapshot, error)

	// InLine reports whether all see in what order the places stand. Then the first of them
	// is the owner's, also while its record says yet that it waits.
	InLine() bool

	// Note puts another record in place of the one there is. ErrGone where the place is
	// lost.
	Note(ctx context.Context, record Record) error

	// Await returns once it is worth looking again: the place in front of this
	// place has left it, or ctx is done, which is no error. As soon as it is known that
	// only the owner is in front, next is called, more than once maybe; a polling
	// store never calls it.
	Await(ctx context.Context, next func()) error

	// Ask asks the owner of the acquisition token to end its job, with pause
	// between the signals. False: another has asked before, or it has gone. Where
	// there is no line that is not known.
	Ask(ctx context.Context, token string, pause time.Duration) (first bool, err error)

	// Asked returns when a newcomer has asked this owner to end its job, with the
	// pause; or with an error: once ctx is done, or ErrGone where the place is known
	// to be lost.
	Asked(ctx context.Context) (pause time.Duration, err error)

	// Pass removes the owner in front of this place, which is known to be dead,
	// and stamps the last lock for it; without a stamp it never ran. One that has
	// given a sign of life since the last look stays. Of several that pass it one stamps,
	// now or in the Look in which its place comes to hold the atom.
	Pass(ctx context.Context, token string, stamp *Last) error

	// Renew proves that the place is still held, by a write, and begins the lease
	// anew, at the latest when Renew was called. ErrGone where it is lost.
	Renew(ctx context.Context) error

	// Lease is the length of the lease that the store has granted.
	Lease() time.Duration

	// Fence is a number that only grows from one owner of the atom to the next.
	Fence() uint64

	// ClaimTick claims the tick, which is remembered for its Life. False: another
	// has. Again it says what it said before.
	ClaimTick(ctx context.Context, tick policy.Tick) (bool, error)

	// DisclaimTick takes back what ClaimTick has claimed, as far as that is certain.
	DisclaimTick(ctx context.Context, tick policy.Tick) error

	// Leave gives the place up. With a stamp the atom has completed: both in one
	// step. ErrGone where the place was lost before; nothing is stamped then.
	Leave(ctx context.Context, stamp *Last) error
}

// ErrGone says that others have gone past a place whose lease was not renewed, or that a person
// has removed the lock.
var ErrGone = errors.New("the lease is gone")

// ErrCrowded says that the store is there and has no room for one more just now.
var ErrCrowded = errors.New("no room for one more")

// ErrUnfit says that the store does not do what a lock relies on. The reason stands before it.
var ErrUnfit = errors.New("no lock can be kept there")

// passes reports whether the store is out of reach for now, and may answer later.
func passes(err error) bool {
	return fault.KindOf(err) == fault.Unavailable && !errors.Is(err, ErrUnfit)
}

// ErrShared, of Look and Enter, says that a store cannot have many readers.
var ErrShared = errors.New("many readers at once are not offered here")

// Snapshot is what is to be seen of an atom at one moment.
type Snapshot struct {
	Now  time.Time // by the clock that Last was stamped by, as far as is known without asking
	Last Last

	Held   bool // another is in the way; the rest is about the first of them
	Owner  Record
	Age    time.Duration // since it came to own the atom
	Lapsed bool          // it is dead: it was seen to give no sign of life for its whole lease
	Silent bool          // it may be: by the clocks its last sign of life is older than its lease
	Bare   bool          // it has no record yet, or never will
}

// Last is the last lock: when the atom last completed.
type Last struct {
	record.Last
	Token string // of the acquisition that completed
	Node  string // the machine on which it did
	Clock string // what the store's own clock showed then, in the store's words; "": not known
	Kept  bool   // Completed is as it was before this was written: nothing has completed since
}
