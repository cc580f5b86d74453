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
	// Take takes the atom or says why not: GetLock of the 1997 paper. A denial is an Outcome, not
	// an error. The verdict Stuck comes with an error too.
	Take(Request) (Outcome, error)

	// Release stamps the last lock and releases the atom. An error of the kind fault.Denied says
	// that the lock was lost.
	Release(ReleaseRequest) error

	// DryRun returns what Take would do now, and changes nothing. The learned limits of the request
	// are put in force.
	DryRun(*Request) (policy.Decision, error)

	// RecordCommand records in the lock the command that the owner of an acquisition has started;
	// RecordMembers records the members of its job, before its own supervisor signals them;
	// RecordRest records the processes that the command has left. BeingEnded tells whether another
	// process is ending that job, or has begun to. If a lock ends with its owner, even while its
	// job lives, nothing is recorded and BeingEnded is false.
	RecordCommand(name atom.Name, token string, command process.Identity) error
	RecordMembers(name atom.Name, token string, members []process.Identity) error
	RecordRest(name atom.Name, token string, rest []process.Identity) error
	BeingEnded(name atom.Name, token string) (bool, error)

	// RecordSignal logs that an owner has sent a signal to its own job.
	RecordSignal(*Request, killer.Signalled)

	// OwnExpires logs, before the first signal, that an owner ends its own job at ExpireAfter. age is
	// how long it has held the atom, idle how long the job was seen idle (0: it was not watched).
	OwnExpires(r *Request, token string, age, idle time.Duration)

	// OwnStuck reports that an owner cannot end its own job now, and stays with it.
	OwnStuck(r *Request, token string, age time.Duration, why error)

	// OwnOverdue tells the hook if this process's run, which has held the atom for that long, is
	// overdue. It returns the age at which to ask again.
	OwnOverdue(r *Request, token string, age time.Duration) (next time.Duration)

	// Cancelled logs that a signal ends the newcomer before its job begins.
	Cancelled(r *Request, signal string, waited time.Duration)
}
