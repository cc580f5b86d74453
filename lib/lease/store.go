// Package lease carries an atom beyond one machine: its two locks live in a store that several machines
// reach, and a locksmith tends them there (Burke, "Resource Locking over Networks", 2002). Package policy
// decides what to do, as in a lock directory. A lease shows whether an owner on another machine lives.
//
// A locksmith holds an atom on a lease, and sends a heartbeat every third of the lease. Once two thirds have
// passed since it sent the last successful heartbeat, it ends the job: so the job is gone before the lease is
// over and another owner can hold the atom. A watchdog ends the job if the locksmith is dead or stopped.
//
// An owner is dead once a newcomer has seen no heartbeat of it for the whole lease, by the newcomer's own
// boottime clock, or if a newcomer on the owner's machine finds that the owner and its job are gone. Nothing
// else proves a death: neither the loss of the owner's lock in the store, nor other clocks.
//
// It is assumed that the boottime clocks of all machines run at about the same rate, and that KILL ends a
// process at once: the locksmith sends KILL a fifth of the lease before its end, and the watchdog a
// twelfth. None of this depends on the time that the machines' clocks show; on etcd, IfElapsed, ticks and the
// ages of owners do. A job can outlive its lease if its machine is suspended, or if KILL does not end it: if
// that would do harm, the job must send its fence (ADLOCK_FENCE, a fencing token) with each write.
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

const DefaultLease = 15 * time.Second // how long an owner may send no heartbeat if no other length is set

// Store keeps the locks of atoms. One Store is used for one atom and its slot at a time, or to list all. A store that
// offers no readers, or no ticks, refuses requests for them (fault.Usage). A store may have two more methods: IsSlow
// (see Slow), and OnlyRead, which stops all writing, for a caller that only wants to look.
type Store interface {
	// Look reads both locks of an atom for a newcomer that wants to be a reader (shared) or a writer: only
	// writers are in a reader's way. It changes neither lock, but may mark a lock without a record as seen.
	Look(ctx context.Context, name atom.Name, shared bool) (Snapshot, error)

	// Enter makes a place with this record and on the record's lease, and returns what is in front of it. If
	// queue is false and another place is in the way, it makes none (nil).
	Enter(ctx context.Context, name atom.Name, record Record, queue bool) (Place, Snapshot, error)

	// HasTick reports whether the tick of the atom was claimed.
	HasTick(ctx context.Context, name atom.Name, tick policy.Tick) (bool, error)

	// List reads every atom and slot of the store. It changes no lock, but may mark some as Look does.
	List(ctx context.Context) ([]Listed, error)

	// Remove removes the lock with this token, whose owner is dead, and stamps nothing. Token "" means a place without
	// a record. It returns ErrGone if the lock is gone, and Renewed if its heartbeat has moved since it was last read.
	Remove(ctx context.Context, name atom.Name, token string) error

	// String returns the store's address without a password, for messages.
	String() string

	Close() error
}

// Place is what one newcomer has at an atom: a position in the queue or, at its head, the atom itself, until
// Leave, or until the place is lost (ErrGone). Several goroutines may call its methods.
type Place interface {
	// Look reads both locks; the snapshot is about the places in front of this one. In a store without a
	// queue, Look acquires the atom if it is free.
	Look(ctx context.Context) (Snapshot, error)

	// InLine reports whether all newcomers see the order of the places. Then the head of the
	// queue is the owner, even while its record still says that it waits.
	InLine() bool

	// Note replaces the place's record. It returns ErrGone if the place is lost.
	Note(ctx context.Context, record Record) error

	// Await returns when Look may find a change: the place in front has gone or is dead, a polling store's
	// interval is over, or ctx is done (no error). As soon as Await finds that only the owner is in front, it
	// calls next, perhaps several times; a polling store never does.
	Await(ctx context.Context, next func()) error

	// Ask asks the owner with this token to end its job, with pause between the signals. It returns true for the newcomer
	// that asks first, if the owner is there. Several are first without a queue, or if a question is sent twice.
	Ask(ctx context.Context, token string, pause time.Duration) (first bool, err error)

	// Asked waits until a newcomer asks this owner to end its job, and returns the pause. It returns an error
	// once ctx is done or the store fails, and in a store with a queue ErrGone once the place is lost.
	Asked(ctx context.Context) (pause time.Duration, err error)

	// Pass removes the place in front, which has a dead owner or no record (on FTP, the next owner removes it),
	// and writes stamp, if not nil, as the last lock. The place stays if its owner has sent a heartbeat since
	// the last Look. Of several newcomers, one stamps: now, or in the Look by which it acquires the atom.
	Pass(ctx context.Context, token string, stamp *Last) error

	// Renew proves by a write that the place is still held, and restarts the lease, which then lasts at least Lease from
	// the call of Renew. It returns ErrGone if the place is lost. Without a queue, Renew does nothing for a waiter.
	Renew(ctx context.Context) error

	// Fence returns the fencing token: a number that grows from each owner of the atom to the next.
	Fence() uint64

	// ClaimTick claims the tick, and the store remembers the claim for the tick's Life. It returns false if
	// another acquisition has claimed the tick. A second call gives the same answer.
	ClaimTick(ctx context.Context, tick policy.Tick) (bool, error)

	// DisclaimTick takes back the claim of ClaimTick, if it is certain that the claim is this place's.
	DisclaimTick(ctx context.Context, tick policy.Tick) error

	// Leave gives the place up and, if stamp is not nil, writes the last lock: in the same step or, on FTP, in
	// an earlier one. It returns ErrGone, and stamps nothing, if the place was lost before.
	Leave(ctx context.Context, stamp *Last) error
}

// ErrGone says that the place is lost: a newcomer passed it because its lease was over, or a person removed it.
var ErrGone = errors.New("the lease is gone")

var ErrCrowded = errors.New("no room for one more") // the store has no room for another connection now

// ErrUnfit says that the store lacks what a lock relies on. An error that wraps it gives the reason.
var ErrUnfit = errors.New("no lock can be kept there")

// isTransient reports whether the store is unreachable now, and may answer later.
func isTransient(err error) bool {
	var why Reason
	hopeless := errors.As(err, &why) && why.Lasting == Hopeless
	return fault.KindOf(err) == fault.Unavailable && !errors.Is(err, ErrUnfit) && !hopeless
}

// Snapshot is an atom as seen at one moment.
type Snapshot struct {
	Now  time.Time // that moment: on FTP by the server's clock, which also dates Last; on etcd by this machine's
	Last Last

	Held   bool // another place is in the way; the fields below are of the first such place
	Owner  Record
	Age    time.Duration // since the owner came to own the atom; if Bare, since the lock was made or found
	Lapsed bool          // the owner is dead: it was seen silent for its whole lease
	Silent bool          // the owner may be dead: its last heartbeat seems older than its lease, or lies in the future
	Bare   bool          // the place has no whole record: its creator has not stored it yet, or was cut off
}

// Last is the last lock: when the atom last completed.
type Last struct {
	record.Last
	Token string // of the acquisition that completed or, for a dead owner, of the newcomer that passed it
	Node  string // the machine of the run that completed, or whose owner died
	Kept  bool   // Completed was copied from the previous last lock: no run that counts has completed since
}
