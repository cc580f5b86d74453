package process

import (
	"errors"
	"fmt"
)

// Job is what runs under one lock.
type Job struct {
	Owner     Identity
	Command   Identity   // what 'adlock run' started, as it was then; PID 0: not recorded
	Survivors []Identity // members of a job whose ending has begun
	Uncounted bool       // and more of them than the lock had room for

	// FileUID is the user that owns the lock file, -1 where there is none. A
	// lock file condemns only that user's processes, so that a planted pid
	// kills no other user's. Descendants of a verified owner are
	// condemned whatever their user.
	FileUID int

	// Supervised: the owner is 'adlock run', which forwards signals and exits
	// when its job has. It is signalled only once nothing else of the job
	// lives, so that no process of the job gets a signal twice, and so that
	// orphans stay within its sight: on Linux it is their subreaper.
	Supervised bool
}

// Why a job lives on, or may. They come wrapped in a *StuckError.
var (
	ErrUncounted = errors.New("began to be ended with more processes than its lock has room for")
	ErrUnchecked = errors.New("cannot be checked from here (another host or namespace, or hidden)")
	errSurvivor  = errors.New("was to be ended with its job, and lives")
)

// StuckError names the process that keeps a job from being ended.
type StuckError struct {
	PID     int    // negative: a process group of that number
	Command string // "" where it is not known
	Err     error
}

func (e *StuckError) Error() string {
	if e.PID < 0 {
		return fmt.Sprintf("process group %d: %v", -e.PID, e.Err)
	}
	if e.Command == "" {
		return fmt.Sprintf("process %d: %v", e.PID, e.Err)
	}
	return fmt.Sprintf("process %d (%s): %v", e.PID, e.Command, e.Err)
}

// Unwrap returns the reason.
func (e *StuckError) Unwrap() error { return e.Err }
