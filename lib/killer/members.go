package killer

import (
	"errors"

	"adlock/lib/process"
)

// Members returns the processes that would be signalled now, parents before children. It sends
// nothing; its errors are those with which Killer.End would refuse.
func Members(job process.Job) ([]process.Entry, error) {
	h, err := track(job)
	if err != nil {
		return nil, err
	}
	return h.list()
}

// Descendants returns the living descendants of this process and, with group, if it leads a
// process group, the other members of that group that started no earlier than it. Parents come
// before their children.
func Descendants(group bool) ([]process.Entry, error) {
	h, err := trackOwn(group)
	if err != nil {
		return nil, err
	}
	return h.list()
}

// The reasons why a job is not, or not wholly, ended, besides those of package process.
// ErrAncestor is also returned if this process or an ancestor is a member of the job. The others
// come wrapped in a *process.StuckError, as does unix.EPERM.
var (
	ErrAncestor     = errors.New("is this process or one of its ancestors")
	errForeignOwner = errors.New("belongs to another user than the lock file")
	errAlive        = errors.New("still alive after KILL")
)
