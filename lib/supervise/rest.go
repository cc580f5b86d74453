package supervise

import (
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/process"
)

// The pauses between checks for processes that outlived the command. They grow from restLeast to one of the
// other two, because a check may read the lock or the process table.
const (
	restLeast = 20 * time.Millisecond
	restMost  = time.Second
	wholeMost = time.Minute // for WholeJob, as daemons may run for days; a child's death ends a pause early
)

// wasEnded reports whether another process or the kernel ended the command: it died of a signal, or exited with a
// shell's status of such a death, as mksh does. (zsh exits with 1 at a HUP, which does not count.) wasEnded is also
// true while another process may be ending the job. If this process exited now, the remaining processes would lose
// their subreaper. Those that fork and exit could then not be found any more.
func (r *run) wasEnded() bool {
	return r.status.Signaled() || isDeath(r.status.ExitStatus()) || r.job.BeingEnded != nil && r.job.BeingEnded()
}

// isDeath reports whether an exit status is a shell's for a command that was ended from outside.
func isDeath(status int) bool {
	return slices.Contains([]unix.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGKILL, unix.SIGTERM}, unix.Signal(status-128))
}

// mustOutlast reports whether to wait for processes that the command left behind. mustOutlast calls wasEnded,
// which reads the lock, only if there may be such processes.
func (r *run) mustOutlast() bool { return !isAlone() && (r.job.WholeJob || r.wasEnded()) }

// isAlone reports whether it is certain that the job has no process left: its orphans are this subreaper's children.
func isAlone() bool { return CanKeepWhole() && !hasChildren() }

// outlast first records the daemons of a whole job. Then a goroutine waits until no process of the job lives, or
// mustOutlast is false, and sends nil, or the error of reading the processes, to r.rest. Until then newcomers find the
// atom busy. A newcomer ends what is left when the limit has passed, and this process does so at TERM.
func (r *run) outlast() {
	r.rest = make(chan error, 1)
	most := restMost
	if r.job.WholeJob {
		most = wholeMost
		r.note(r.recordRest())
	}
	go func() {
		for pause := restLeast; ; pause = min(2*pause, most) {
			left, err := r.anyLeft()
			if err != nil || !left || !r.mustOutlast() {
				r.rest <- err
				return
			}
			select {
			case <-time.After(pause):
			case <-r.reaped: // perhaps the last process; the sleep combines many deaths into one check
				time.Sleep(restLeast)
			}
		}
	}()
}

// anyLeft reports whether a process of the job is left. A dead process that is not reaped yet counts too.
func (r *run) anyLeft() (bool, error) {
	if hasChildren() {
		return true, nil
	}
	members, err := r.place.members()
	return len(members) > 0, err
}

// mostRecorded is how many daemons recordRest records at most: a newcomer that ends the job needs room in the lock too.
const mostRecorded = 64

// recordRest records in the lock the daemons of a whole job. They have left the session in which the mark counts: if
// this process died, a newcomer could not find them.
func (r *run) recordRest() error {
	if r.job.Rest == nil || !hasChildren() {
		return nil
	}
	session, err := unix.Getsid(0)
	if err != nil {
		return err
	}
	members, err := r.place.members()
	if err != nil {
		return err
	}
	var away []process.Identity
	for _, m := range members {
		id, err := process.Of(m.PID)
		switch {
		case errors.Is(err, unix.ESRCH), errors.Is(err, unix.EPERM): // gone, or hidden
			continue
		case err != nil:
			return err
		}
		if id.Start == m.Start && m.SID != session {
			away = append(away, id)
		}
	}
	if len(away) == 0 {
		return nil
	}
	if err := r.job.Rest(away[:min(len(away), mostRecorded)]); !errors.Is(err, ErrBeingEnded) {
		return err
	}
	return nil
}
