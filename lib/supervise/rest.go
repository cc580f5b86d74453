package supervise

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/process"
)

// How often to look for processes that outlived the command: first at once, then less and less
// often, as each look reads the process table.
const (
	restLeast = 20 * time.Millisecond
	restMost  = time.Second
	wholeMost = time.Minute // with WholeJob: daemons stay for days, and the end of the last is noticed at once
)

// wasEnded reports whether the command did not end by itself. One that died of a signal did not:
// a newcomer was ending the job, and may itself have been killed before the rest of it was dead,
// or the kernel ran out of memory. Nor did one that a newcomer is ending, however it handled the
// signal: the processes it left lose their subreaper with this process, and one that forks again
// is lost from sight.
func (r *run) wasEnded() bool {
	return r.status.Signaled() || r.job.BeingEnded != nil && r.job.BeingEnded()
}

// mustOutlast reports whether to wait for the processes that the command left behind.
func (r *run) mustOutlast() bool { return r.job.WholeJob || r.wasEnded() }

// outlast waits, beside the loop, until no process of the job lives or none need be taken for the
// job any more, and reports that on r.rest. The job did not mean to leave behind what goes on
// after wasEnded, so only its death may free the lock. Newcomers find it busy meanwhile, and end
// it when it expires; so does a signal to this process.
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
			case <-r.reaped: // perhaps the last: but not each of many is worth a look
				time.Sleep(restLeast)
			}
		}
	}()
}

// anyLeft reports whether a process of the job lives, or is not reaped yet.
func (r *run) anyLeft() (bool, error) {
	if hasChildren() {
		return true, nil
	}
	members, err := r.place.members()
	return len(members) > 0, err
}

// mostRecorded is how many of the rest are recorded: a lock has room for more, but not beside
// those of a newcomer that may have to end them.
const mostRecorded = 64

// recordRest has the lock name the processes of the whole job that would be lost from sight with
// this process: daemons, which have left its group. That happens once, when the command has
// ended; a process that leaves the group later is not known.
func (r *run) recordRest() error {
	if r.job.Rest == nil || !hasChildren() {
		return nil
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
		if id.Start == m.Start && !(r.place.groupIsJob() && m.PGID == unix.Getpgrp()) {
			away = append(away, id)
		}
	}
	if len(away) == 0 || len(away) > mostRecorded {
		return nil
	}
	if err := r.job.Rest(away); !errors.Is(err, ErrBeingEnded) {
		return err
	}
	return nil
}
