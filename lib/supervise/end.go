package supervise

import (
	"errors"
	"time"

	"adlock/lib/idle"
	"adlock/lib/killer"
	"adlock/lib/process"
)

// newAlarm returns the timer of Enforce. Like every timer of the runtime it stands still while the
// machine sleeps, and so does the job. Without Enforce newAlarm returns a timer that never runs: for
// the first running timer, the runtime opens two descriptors and keeps a thread.
func (r *run) newAlarm() *time.Timer {
	if !r.job.Enforce {
		return new(time.Timer)
	}
	return newTimer(r.left())
}

var newTimer = time.NewTimer // a variable for tests, in which the limit is over when a test says so

func (r *run) left() time.Duration { return r.job.ExpireAfter - time.Since(r.began) }

// look is called when ExpireAfter has passed, and again some time after a watch that saw work. Unless the job
// is being ended, look ends the job, or with Job.Watch first has the job watched.
func (r *run) look() {
	switch {
	case r.ending != nil:
	case r.job.Watch > 0:
		r.watchJob()
	default:
		r.expire(0)
	}
}

func (r *run) expire(idle time.Duration) {
	r.late, r.idle = true, idle
	r.doom()
}

func (r *run) doom() {
	r.doomed = true
	r.end(0)
}

// watchJob starts to watch whether the job works. An error counts as work, until the next watch.
func (r *run) watchJob() {
	r.watched = make(chan idle.Verdict, 1)
	go func() {
		verdict, err := idle.Job{Members: r.place.members, Length: r.job.Watch}.Watch()
		if err != nil {
			verdict.Work = err.Error()
		}
		r.watched <- verdict
	}()
}

// judge ends a job that was idle for the whole watch. If the job worked, it is watched again later.
func (r *run) judge(alarm *time.Timer, seen idle.Verdict) {
	r.watched = nil
	switch {
	case r.ending != nil:
	case seen.Idle == 0:
		alarm.Reset(idle.Shortest)
	default:
		r.expire(seen.Idle)
	}
}

// end starts to end the whole job, after a grace; the result goes to r.ending. A goroutine ends the job, while
// the main loop goes on reaping.
func (r *run) end(grace time.Duration) {
	r.again = nil
	r.ending = make(chan error, 1)
	go func() { r.ending <- r.endAll(grace) }()
}

// endAll ends what is left of the job after grace. While another process is ending the job, endAll only
// waits: each process must get each signal once, and orphans need their subreaper, which is this process.
func (r *run) endAll(grace time.Duration) error {
	ending := killer.Killer{Pause: r.job.Pause, Observe: r.job.Observe, Record: r.record}
	for !r.none(grace) {
		if err := ending.EndDescendants(r.place.groupIsJob()); !errors.Is(err, ErrBeingEnded) {
			return err
		}
		grace = 0
	}
	return nil
}

// record calls Job.Record and, the first time after ExpireAfter, Job.Expires. At an error the killer sends no further signal.
func (r *run) record(members []process.Identity) error {
	if r.job.Record != nil {
		if err := r.job.Record(members); err != nil {
			return err
		}
	}
	if r.late && !r.expired {
		r.expired = true
		if r.job.Expires != nil {
			r.job.Expires(r.idle)
		}
	}
	return nil
}

// The shortest and the longest time from a failed ending to the next try. A try may send signals, and logs them, so
// the time grows with the time since the first failure. againLeast is a variable for tests.
var againLeast = time.Minute

const againMost = time.Hour

// isOver reaps, and reports whether Run may return. Run may not if err says that the job could not be ended, or that
// its processes could not be read. Then isOver reports err (Job.Stuck) and schedules another try.
func (r *run) isOver(err error) bool {
	r.reap()
	if err == nil {
		return true
	}
	r.sayStuck(err)
	r.again = time.After(min(max(againLeast, process.Boottime()-r.stuck), againMost))
	return false
}

func (r *run) sayStuck(why error) {
	if r.stuck != 0 {
		return
	}
	r.stuck = process.Boottime()
	if r.job.Stuck != nil {
		r.job.Stuck(why)
	}
}

// tryAgain tries again to end a doomed job: what prevented that may be gone by now. If the job is not doomed, its
// command is gone. The main loop, for which again is now nil, then decides again whether to wait for what is left.
func (r *run) tryAgain() {
	r.again = nil
	if r.doomed {
		r.end(0)
	}
}

// none waits for at most grace until no process of the job lives, and reports whether that is so. If the
// processes cannot be read, none returns false; Killer then reports the error.
func (r *run) none(grace time.Duration) bool {
	const interval = 20 * time.Millisecond
	for until := time.Now().Add(grace); ; time.Sleep(interval) {
		members, err := r.place.members()
		if err == nil && len(members) == 0 {
			return true
		}
		if err != nil || !time.Now().Before(until) {
			return false
		}
	}
}
