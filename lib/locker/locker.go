package locker

import (
	"time"

	"adlock/lib/atom"
	"adlock/lib/killer"
	"adlock/lib/policy"
	"adlock/lib/process"
)

// Locker takes and releases atoms: those of a lock directory, or of a store.
type Locker interface {
	// Take acquires an atom (GetLock of the paper). A denial is an Outcome, not an error; Stuck is both.
	Take(Request) (Outcome, error)

	// Release stamps the last lock (if wanted) and releases the atom; fault.Denied if the lock is lost or guarded.
	Release(ReleaseRequest) error

	// DryRun returns what Take would do now. It puts the learned limits in force.
	DryRun(*Request) (policy.Decision, error)

	RecordSignal(*Request, killer.Signalled)

	// OwnExpires logs, before the first signal, that an owner ends its own job at ExpireAfter. age is how long the
	// job has run, idle how long a watch saw it idle (0: it was not watched).
	OwnExpires(r *Request, token string, age, idle time.Duration)

	// OwnStuck reports that an owner cannot end its own job now, and goes on to hold the lock.
	OwnStuck(r *Request, token string, age time.Duration, why error)

	// OwnOverdue logs, and notifies the hook, that this process's run is overdue, if it is. Call it again at age next.
	OwnOverdue(r *Request, token string, age time.Duration) (next time.Duration)

	// Cancelled logs that a signal ends the newcomer before its job begins. In a store the newcomer leaves the queue.
	Cancelled(r *Request, signal string, waited time.Duration)
}

// JobRecorder is a Locker whose locks name the processes of the job. Those of a store do not: a lease runs out
// after its owner's death, and no newcomer ends the job.
type JobRecorder interface {
	// RecordCommand records the command that the owner of an acquisition has started. RecordMembers records the members
	// of its job, before its own supervisor signals them. RecordRest records the daemons that the command left behind.
	RecordCommand(name atom.Name, token string, command process.Identity) error
	RecordMembers(name atom.Name, token string, members []process.Identity) error
	RecordRest(name atom.Name, token string, rest []process.Identity) error

	// BeingEnded reports whether another process is, or may be, ending that job.
	BeingEnded(name atom.Name, token string) (bool, error)
}
