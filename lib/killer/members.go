package killer

import (
	"errors"

	"adlock/lib/process"
)

// Members returns the processes that Killer.End would signal now, parents before children. It sends no
// signal. Unlike End it returns no error for a member that may not be signalled.
func Members(job process.Job) ([]process.Entry, error) {
	return list(track(job))
}

// Endable returns the error with which Killer.End would refuse the job before its first signal.
func Endable(job process.Job) error {
	h, err := track(job)
	if err != nil || h.membership.Empty() {
		return err
	}
	defer h.close()
	_, err = h.check()
	return err
}

// Descendants returns the living descendants of this process. With group, if this process leads a group, it also
// returns the other members of that group that started no earlier than this process. Parents come before children.
func Descendants(group bool) ([]process.Entry, error) {
	return list(trackOwn(group))
}

// These errors say why a job was not ended, or only in part; package process defines more. ErrAncestor means that the
// owner or another member is this process or an ancestor. The others, and unix.EPERM, come in a *process.StuckError.
var (
	ErrAncestor     = errors.New("is this process or one of its ancestors")
	ErrAlive        = errors.New("still alive after KILL")
	errForeignOwner = errors.New("belongs to another user than the lock file")
)
