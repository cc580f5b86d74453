package lease

import (
	"os"
	"time"

	"adlock/lib/idle"
	"adlock/lib/killer"
	"adlock/lib/process"
)

// watch checks whether the job works, from its learned limit on until the atom is released, and keeps the
// result in the record. A newcomer on another machine cannot see the job: it asks for the end of a job past a
// learned limit only if the record says that the job is idle. length is how long the job has to be idle.
//
// If the job works again, a newcomer may still end it until the next watch sees it work: the last watch counts.
func (t *heldLease) watch(length time.Duration) {
	if !t.pause(t.record.ExpireAfter) {
		return
	}
	job := idle.Job{Members: t.members, Length: length, Over: func() bool { return t.ctx.Err() != nil }}
	for {
		seen, err := job.Watch()
		if err != nil {
			seen.Work = err.Error() // a job that cannot be examined counts as working
		}
		t.noteSeen(seen)
		if seen.Idle == 0 && !t.pause(idle.Shortest) || t.ctx.Err() != nil {
			return
		}
	}
}

// members returns the processes of the job, without a supervisor that holds the lock itself.
func (t *heldLease) members() ([]process.Entry, error) {
	if t.record.Owner.PID == os.Getpid() {
		return killer.Descendants(true)
	}
	return killer.Members(t.record.KnownJob(-1))
}

// noteSeen writes into the record that the job has begun to work, or has become idle. If only the
// text about its work has changed, it writes nothing.
func (t *heldLease) noteSeen(seen idle.Verdict) {
	t.noting.Lock()
	changed := (seen.Idle > 0) != (t.record.Idle > 0) || (seen.Work != "") != (t.record.Work != "")
	if changed {
		t.record.Idle, t.record.Work = seen.Idle, seen.Work
	}
	t.noting.Unlock()
	if changed {
		t.keepNoting()
	}
}
