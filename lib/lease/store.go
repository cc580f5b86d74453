// Package lease carries an atom beyond one machine: its two locks live in a store that several
// machines reach, and a locksmith tends them there (Burke, "Resource Locking over Networks",
// 2002). Package policy decides what to do, as in a lock directory; the steps here keep the
// decision true beyond the reach of a process table.
//
// A locksmith holds an atom on a lease, and sends a heartbeat every third of it. If two thirds
// have passed since it sent the last successful one, it ends the job, so that the job is gone
// before the lease is, and before another owner can hold the atom. A watchdog process, the guard,
// does the same if the locksmith was killed or stopped.
//
// An owner is dead once a newcomer has seen no heartbeat of it for the whole lease, by the
// newcomer's own boottime clock. Nothing else proves a death: not that the store has forgotten
// the owner, nor what the clocks show.
//
// It is assumed that the boottime clocks of all machines run at about the same rate, and that
// KILL ends a process at once: KILL is sent a fifth of the lease before its end, by the guard a
// twelfth. The time that the machines' clocks show does not matter to that. IfElapsed is judged
// by the store's clock (Elapsed), as far as it has one: see etcd and ftp. A suspended machine, or
// a process that KILL does not end, can outlive its lease: if that must do no harm, the job
// passes on its fence (ADLOCK_FENCE).
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

// DefaultLease is how long the store keeps an atom for a silent locksmith.
const DefaultLease = 15 * time.Second

// ShortestLease and LongestLease are the limits of a lease: the shortest leaves KILL its second
// in each part of it.
const (
	ShortestLease = 6 * time.Second
	LongestLease  = time.Hour
)

// Store keeps the locks of atoms. It is used for one atom at a time, or to list all.
type Store interface {
	// Look reads both locks of an atom, as a reader (shared) or a writer finds them, and writes
	// nothing.
	Look(ctx context.Context, name atom.Name, shared bool) (Snapshot, error)

	// Enter asks for a place at the atom, under the record, on a lease of at least that length,
	// and looks once more from there. A newcomer that does not want to queue (line) gets no place
	// (nil) if another process is in the way.
	Enter(ctx context.Context, name atom.Name, record Record, lease time.Duration, line bool) (Place, Snapshot, error)

	// Elapsed is how long before the snapshot its last lock was stamped, by the store's clock, as
	// far as it has one.
	Elapsed(ctx context.Context, seen *Snapshot) (time.Duration, error)

	// HasTick reports whether the tick of the atom was claimed.
	HasTick(ctx context.Context, name atom.Name, tick policy.Tick) (bool, error)

	// List looks at every atom and slot that the store knows, in the order of their names. It
	// writes no more than Look may.
	List(ctx context.Context) ([]Listed, error)

	// Remove removes the lock of the acquisition token, whose owner is dead; "": of a place
	// without a record. Nothing is stamped. ErrGone if it is not there any more.
	Remove(ctx context.Context, name atom.Name, token string) error

	// String is the store's address, for messages: without a password.
	String() string

	Close() error
}

// Place is what one newcomer has at an atom: the atom, or a place in the queue for it, until
// Leave or until the lease has run out. Several goroutines may call it.
type Place interface {
	// Look looks at the locks from here.
	Look(ctx context.Context) (Snapshot, error)

	// InLine reports whether all newcomers see the order of the places. Then the head of the
	// queue is the owner, even while its record still says that it waits.
	InLine() bool

	// Note replaces the place's record. ErrGone if the place is lost.
	Note(ctx context.Context, record Record) error

	// Await returns once it is worth looking again: the place in front has gone, or ctx is done,
	// which is no error. It calls next, perhaps more than once, as soon as only the owner is
	// known to be in front; a polling store never calls next.
	Await(ctx context.Context, next func()) error

	// Ask asks the owner of the acquisition token to end its job, with pause between the signals.
	// False: another newcomer has asked before, or the owner has gone. Without a queue that is
	// not known.
	Ask(ctx context.Context, token string, pause time.Duration) (first bool, err error)

	// Asked returns the pause when a newcomer has asked this owner to end its job; or an error:
	// once ctx is done, or ErrGone if the place is known to be lost.
	Asked(ctx context.Context) (pause time.Duration, err error)

	// Pass removes the dead owner in front of this place, and stamps the last lock for it;
	// without a stamp it never ran. An owner that has sent a heartbeat since the last look stays.
	// If several newcomers pass it, one of them stamps, now or in the Look in which its place
	// comes to hold the atom.
	Pass(ctx context.Context, token string, stamp *Last) error

	// Renew proves by a write that the place is still held, and restarts the lease, from the call
	// of Renew at the latest. ErrGone if it is lost.
	Renew(ctx context.Context) error

	// Lease is the length of the lease that the store has granted.
	Lease() time.Duration

	// Fence is a number that only grows from one owner of the atom to the next.
	Fence() uint64

	// ClaimTick claims the tick, which is remembered for its Life. False: it was claimed by
	// another acquisition. A second call gives the same answer.
	ClaimTick(ctx context.Context, tick policy.Tick) (bool, error)

	// DisclaimTick takes back the claim of ClaimTick, if it is certain that it made it.
	DisclaimTick(ctx context.Context, tick policy.Tick) error

	// Leave gives the place up. With a stamp the atom has completed: both in one step. ErrGone if
	// the place was lost before; nothing is stamped then.
	Leave(ctx context.Context, stamp *Last) error
}

// ErrGone says that others have passed this process, as it did not renew its lease, or that a
// person has removed the lock.
var ErrGone = errors.New("the lease is gone")

// ErrCrowded says that the store has no room for another connection now.
var ErrCrowded = errors.New("no room for one more")

// ErrUnfit says that the store lacks what a lock relies on. The reason precedes it.
var ErrUnfit = errors.New("no lock can be kept there")

// passes reports whether the store is unreachable now, and may answer later.
func passes(err error) bool {
	return fault.KindOf(err) == fault.Unavailable && !errors.Is(err, ErrUnfit)
}

// ErrShared, of Look and Enter, says that a store does not support many readers.
var ErrShared = errors.New("many readers at once are not offered here")

// Snapshot is an atom as seen at one moment.
type Snapshot struct {
	Now  time.Time // by the clock that stamped Last, as far as is known without asking
	Last Last

	Held   bool // another process is in the way; the rest is about the first of them
	Owner  Record
	Age    time.Duration // since it came to own the atom
	Lapsed bool          // it is dead: it was seen silent for its whole lease
	Silent bool          // it may be dead: by the clocks its last heartbeat is older than its lease
	Bare   bool          // it has no record yet, or never will
}

// Last is the last lock: when the atom last completed.
type Last struct {
	record.Last
	Token string // of the acquisition that completed
	Node  string // the machine on which it did
	Clock string // the store's own clock at that time, in the store's words; "": unknown
	Kept  bool   // Completed was kept from the last lock before: nothing has completed since
}
