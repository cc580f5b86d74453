package supervise

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/process"
)

// How often is looked for what outlived the command: at first at once, then less
// and less, as each look reads the process table.
const (
	restLeast = 20 * time.Millisecond
	restMost  = time.Second
	wholeMost = time.Minute // with WholeJob: daemons stay for days, and the last to go is known at once
)

// wasEnded says whether the command did not come to its own end. One that died of
// a signal did not: a newcomer was ending the job, and may have been killed
// before the rest of it was dead, or the kernel ran out of memory. Nor did one that
// a newcomer is ending, whatever it made of the signal: what it has left loses
// its subreaper with this process, and what forks again is lost from sight.
func (r *run) wasEnded() bool {
	return r.status.Signaled() || r.job.BeingEnded != nil && r.job.BeingEnded()
}

// mustOutlast says whether what the command has left behind is to be waited for.
func (r *run) mustOutlast() bool { return r.job.WholeJob || r.wasEnded() }

// outlast waits, beside the loop, until nothing of the job lives or there is no
// reason any more to take it for the job, and says so on r.rest. What goes on
// after wasEnded is not something that the job meant to leave behind, and only its
// death may free the lock. Newcomers find it busy meanwhile, and end it when it
// expires; so does a signal to this process.
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

// anyLeft says whether anything of the job lives, or has yet to be reaped.
func (r *run) anyLeft() (bool, error) {
	if hasChildren() {
		return true, nil
	}
	members, err := r.place.members()
	return len(members) > 0, err
}

// mostRecorded is how many of the rest are recorded: a lock has room for more, but
// not for those of a newcomer that has to end them.
const mostRecorded = 64

// recordRest has the lock name what is left of the whole job and would else be lost
// from sight with this process: daemons, that is what has left its group. It is done
// once, when the command has ended; what leaves the group later is not known.
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
