package process

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Job is what runs under one lock: what Killer.End ends.
type Job struct {
	Owner     Identity
	Command   Identity   // what 'adlock run' started, as it was then; PID 0: not recorded
	Survivors []Identity // members of a job that somebody has begun to end
	Uncounted bool       // and more of them than the lock had room for

	// FileUID is the user who owns the lock file, -1 where there is none. A
	// lock file condemns only that user's processes, so that a planted pid
	// kills nobody else's (facts 5). Descendants of a verified owner are
	// condemned whatever their user.
	FileUID int

	// Supervised: the owner is 'adlock run', which forwards signals and exits
	// when its job has. It is signalled only once nothing else of the job
	// lives, so that no process of the job gets a signal twice, and so that
	// orphans stay within its sight: on Linux it is their subreaper.
	Supervised bool
}

// Member is a living process of a job.
type Member struct {
	PID, Parent, PGID int
	Start             uint64 // unit as in Identity
	Command           string // as the system abbreviates it: 15 bytes on Linux
}

// Signal sends sig to this very process: unix.ESRCH where it is gone, also
// where its pid is another's by now.
func (m Member) Signal(sig unix.Signal) error {
	h, err := hold(key{m.PID, m.Start}, 0)
	if err != nil {
		return named(m.PID, err)
	}
	defer h.close()
	if err := h.signal(sig); err != nil {
		return named(m.PID, err)
	}
	return nil
}

// Members returns who would be signalled now, parents before children. It
// sends nothing; the errors are those with which Killer.End would refuse.
func (job Job) Members() ([]Member, error) {
	h, err := job.track()
	if err != nil {
		return nil, err
	}
	return h.list()
}

// Descendants returns the living descendants of this process and, with group,
// where it leads a process group, the other members of it that started no
// earlier than it. Parents come before their children.
func Descendants(group bool) ([]Member, error) {
	h, err := trackOwn(group)
	if err != nil {
		return nil, err
	}
	return h.list()
}

// Why a job is not, or not wholly, ended. All but ErrAncestor, which is also
// returned where this process or an ancestor is a member of the job, come wrapped
// in a *StuckError, as does unix.EPERM.
var (
	ErrAncestor     = errors.New("is this process or one of its ancestors")
	ErrUncounted    = errors.New("began to be ended with more processes than its lock has room for")
	ErrForeignOwner = errors.New("belongs to another user than the lock file")
	ErrUnchecked    = errors.New("cannot be checked from here (another host or namespace, or hidden)")
	ErrAlive        = errors.New("still alive after KILL")
	ErrSurvivor     = errors.New("was to be ended with its job, and lives")
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
