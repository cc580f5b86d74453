package killer

import (
	"errors"

	"adlock/lib/process"
)

// Members returns the processes that would be signalled now, parents before children. It
// sends nothing; the errors are those with which Killer.End would refuse.
func Members(job process.Job) ([]process.Entry, error) {
	h, err := track(job)
	if err != nil {
		return nil, err
	}
	return h.list()
}

// Descendants returns the living descendants of this process and, with group,
// where it leads a process group, the other members of it that started no
// earlier than it. Parents come before their children.
func Descendants(group bool) ([]process.Entry, error) {
	h, err := trackOwn(group)
	if err != nil {
		return nil, err
	}
	return h.list()
}

// Why a job is not, or not wholly, ended, beside what package process has. All but
// ErrAncestor, which is also returned where this process or an ancestor is a member
// of the job, come wrapped in a *process.StuckError, as does unix.EPERM.
var (
	ErrAncestor     = errors.New("is this process or one of its ancestors")
	errForeignOwner = errors.New("belongs to another user than the lock file")
	errAlive        = errors.New("still alive after KILL")
)
