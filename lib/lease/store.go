// Package lease carries an atom beyond one machine: its two locks live in a store that several machines
// reach, and a locksmith tends them there (Burke, "Resource Locking over Networks", 2002). Package policy
// decides what to do, as in a lock directory; the steps here keep the decision true beyond the reach of a
// process table.
//
// A locksmith holds an atom on a lease, and sends a heartbeat every third of the lease. If two thirds have
// passed since it sent the last successful heartbeat, it ends the job, so that the job is gone before the
// lease is over and another owner can hold the atom. A watchdog process ends the job if the locksmith was
// killed or stopped.
//
// An owner is dead once a newcomer has seen no heartbeat of it for the whole lease, by the newcomer's own
// boottime clock. Nothing else proves a death: neither the loss of the owner's lock in the store, nor what
// the clocks show.
//
// It is assumed that the boottime clocks of all machines run at about the same rate, and that KILL ends a
// process at once: the locksmith sends KILL a fifth of the lease before its end, and the watchdog a
// twelfth. None of this depends on the time that the machines' clocks show; only IfElapsed does, on etcd. A
// suspended machine, or a process that KILL does not end, can outlive its lease: if that must do no harm,
// the job passes on its fence (ADLOCK_FENCE).
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

// Store keeps the locks of atoms. It is used for one atom at a time, or to list all.
type Store interface {
	// Look reads both locks of an atom as a newcomer finds them: a reader (shared) or a writer. It writes
	// nothing. A store that does not offer readers, or ticks, refuses them (fault.Usage), in each method.
	Look(ctx context.Context, name atom.Name, shared bool) (Snapshot, error)

	// Enter asks for a place at the atom, with the record and on its lease, and looks once more from there.
	// If the newcomer does not queue (line is false), it gets no place (nil) if another is in the way.
	Enter(ctx context.Context, name atom.Name, record Record, line bool) (Place, Snapshot, error)

	// HasTick reports whether the tick of the atom was claimed.
	HasTick(ctx context.Context, name atom.Name, tick policy.Tick) (bool, error)

	// List looks at every atom and slot of the store, in the order of names, and writes no more than Look.
	List(ctx context.Context) ([]Listed, error)

	// Remove removes the lock with this token, whose owner is dead, and stamps nothing. Token ""
	// means a place without a record. ErrGone if the lock is gone already.
	Remove(ctx context.Context, name atom.Name, token string) error

	// String is the store's address, for messages: without a password.
	String() string

	Close() error
}

// Place is what one newcomer has at an atom: the atom, or a place in the queue for it, until
// Leave or until the lease has run out. Several goroutines may call it.
type Place interface {
	// Look reads the locks. The snapshot is about the processes in front of this place.
	Look(ctx context.Context) (Snapshot, error)

	// InLine reports whether all newcomers see the order of the places. Then the head of the
	// queue is the owner, even while its record still says that it waits.
	InLine() bool

	// Note replaces the place's record. ErrGone if the place is lost.
	Note(ctx context.Context, record Record) error

	// Await returns once it is worth looking again: the place in front has gone, or ctx is done (no error).
	// It calls next, perhaps twice, as soon as only the owner is in front. A polling store never does.
	Await(ctx context.Context, next func()) error

	// Ask asks the owner with this token to end its job, with pause between the signals. False: another
	// newcomer has asked before, or the owner has gone. Without a queue several newcomers may get true.
	Ask(ctx context.Context, token string, pause time.Duration) (first bool, err error)

	// Asked waits until a newcomer asks this owner to end its job, and returns the pause. It
	// returns an error once ctx is done, and ErrGone once the place is known to be lost.
	Asked(ctx context.Context) (pause time.Duration, err error)

	// Pass removes the dead owner in front of this place, and stamps the last lock for that owner (nil: it
	// never ran). An owner that has sent a heartbeat since the last look stays. If several newcomers pass
	// one owner, one of them stamps, now or in the Look in which its place comes to hold the atom.
	Pass(ctx context.Context, token string, stamp *Last) error

	// Renew proves by a write that the place is still held, and restarts the lease, which then lasts
	// at least Lease from the call of Renew. ErrGone if the place is lost.
	Renew(ctx context.Context) error

	// Lease is the length of the lease that the store has granted.
	Lease() time.Duration

	// Fence is a number that only grows from one owner of the atom to the next.
	Fence() uint64

	// ClaimTick claims the tick, which is remembered for its Life. False: it was claimed by
	// another acquisition. A second call gives the same answer.
	ClaimTick(ctx context.Context, tick policy.Tick) (bool, error)

	// DisclaimTick takes back the claim of ClaimTick, if it is certain that the claim is this place's.
	DisclaimTick(ctx context.Context, tick policy.Tick) error

	// Leave gives the place up and, with a stamp, stamps the last lock in the same step. ErrGone if
	// the place was lost before; then it stamps nothing.
	Leave(ctx context.Context, stamp *Last) error
}

// ErrGone says that the place is lost: passed, as its lease was not renewed, or removed by a person.
var ErrGone = errors.New("the lease is gone")

// ErrCrowded says that the store has no room for another connection now.
var ErrCrowded = errors.New("no room for one more")

// ErrUnfit says that the store lacks what a lock relies on. The reason precedes it.
var ErrUnfit = errors.New("no lock can be kept there")

// isTransient reports whether the store is unreachable now, and may answer later.
func isTransient(err error) bool {
	var why Reason
	hopeless := errors.As(err, &why) && why.Lasting == Hopeless
	return fault.KindOf(err) == fault.Unavailable && !errors.Is(err, ErrUnfit) && !hopeless
}

// Snapshot is an atom as seen at one moment.
type Snapshot struct {
	Now  time.Time // by the clock that stamps Last: the FTP server's or, on etcd, this machine's
	Last Last

	Held   bool // another process is in the way; the rest is about the first of them
	Owner  Record
	Age    time.Duration // since the owner came to own the atom
	Lapsed bool          // the owner is dead: it was seen silent for its whole lease
	Silent bool          // it may be dead: by the clocks its last heartbeat is older than its lease
	Bare   bool          // it has no record yet, or never will
}

// Last is the last lock: when the atom last completed.
type Last struct {
	record.Last
	Token string // of the acquisition that completed
	Node  string // the machine on which it did
	Kept  bool   // Completed was kept from the last lock before: nothing has completed since
}
