package locker

import (
	"time"

	"adlock/lib/atom"
	"adlock/lib/killer"
	"adlock/lib/process"
)

// Locker takes and releases atoms: those of a lock directory, or of a store.
type Locker interface {
	// Take takes the atom or says why not: GetLock of the 1997 paper. A denial is
	// an Outcome, not an error. With the verdict Stuck there is an error too.
	Take(Request) (Outcome, error)

	// Release stamps the last lock and gives the atom back. An error of the kind
	// fault.Denied says that the lock was lost.
	Release(ReleaseRequest) error

	// DryRun says whether Take would take the atom at this moment, and why, and
	// touches nothing. The limits of the request that are learned are put in force.
	DryRun(*Request) (granted bool, reason string, err error)

	// RecordCommand, RecordMembers and RecordRest have the command that the owner of an
	// acquisition has started, the members of its job before its own supervisor
	// signals them, and what the command has left, written into its lock. BeingEnded tells whether a newcomer is ending
	// that job, or has begun to. Where a lock goes with
	// its owner, whatever lives of the job, nothing is written and the answer is false.
	RecordCommand(name atom.Name, token string, command process.Identity) error
	RecordMembers(name atom.Name, token string, members []process.Identity) error
	RecordRest(name atom.Name, token string, rest []process.Identity) error
	BeingEnded(name atom.Name, token string) (bool, error)

	// RecordSignal writes down that an owner has sent a signal to its own job.
	RecordSignal(*Request, killer.Signalled)

	// OwnOverdue tells the hook where the run of this process, which has held the atom for
	// that age, is overdue. It returns the age at which to ask again.
	OwnOverdue(r *Request, token string, age time.Duration) (next time.Duration)

	// Cancelled writes down that a signal ends the newcomer before its job begins.
	Cancelled(r *Request, signal string, waited time.Duration)

	// Linger keeps a lock that goes with its owner while alive says that something
	// is left of a job that could not be ended, and tells newcomers that ask why; it is true
	// once nothing is. Where the lock itself stays as long it is false at once.
	Linger(why error, alive func() bool) (gone bool)
}
