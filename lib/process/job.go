package process

import (
	"errors"
	"strconv"
	"time"
)

// Job describes the processes that run under one lock.
type Job struct {
	Owner     Identity
	Command   Identity   // the process that 'adlock run' started, as it was at its start; PID 0: not recorded
	Survivors []Identity // members of a job whose ending has begun, and daemons that a whole job left (--whole-job)
	Uncounted bool       // there were more survivors than the lock had room for

	Token string        // the lock's token, which its job has in the environment (MarkVariable); "": none
	Taken time.Duration // boottime at which the lock was taken

	// FileUID is the user that owns the lock file, -1 without one. The owner must be that user's process, so
	// that a pid planted in the file ends no other user's process. Package killer (foreign) says which other
	// processes of the job may run as another user.
	FileUID int

	// Supervised says that the owner is 'adlock run', which forwards signals and exits after its job. Such an owner is
	// signalled last, so that no process gets a signal twice, and so that the owner still adopts orphans (Linux).
	Supervised bool
}

// The reasons why a job is, or may be, alive. They come wrapped in a *StuckError.
var (
	ErrUncounted = errors.New("began to be ended with more processes than its lock has room for")
	ErrUnchecked = errors.New("cannot be checked from here (another host or namespace, or hidden)")
	ErrUnmarked  = errors.New("may belong to the job: it shows no environment from which that could be known")
	errSurvivor  = errors.New("belongs to its job, and lives")
)

// StuckError names the process or group because of which a job cannot be ended, or counts as alive.
type StuckError struct {
	PID     int    // negative: the process group -PID
	Command string // "" if unknown
	User    string // id of its user, which may be the reason; "": unknown, or there is another reason
	Err     error
}

func (e *StuckError) Error() string {
	if e.PID < 0 {
		return "process group " + strconv.Itoa(-e.PID) + ": " + e.Err.Error()
	}
	text := "process " + strconv.Itoa(e.PID)
	if e.Command != "" {
		text += " (" + e.Command + ")"
	}
	if e.User != "" {
		text += " of user " + e.User
	}
	return text + ": " + e.Err.Error()
}

// Refused returns a StuckError with why, the reason why e cannot be signalled, and e's user, which may be the reason.
func Refused(e Entry, why error) *StuckError {
	stuck := &StuckError{PID: e.PID, Command: e.Command, Err: why}
	if uid, err := User(e.PID); err == nil {
		stuck.User = strconv.Itoa(uid)
	}
	return stuck
}

func (e *StuckError) Unwrap() error { return e.Err }
