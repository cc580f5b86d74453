package lease

import (
	"time"

	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/record"
)

// completes sets the times of a run that completes now. All the times are by one clock: the clocks of machines differ,
// but the differences between the times of one last lock are right even if that one clock is wrong.
func (l *Last) completes(r Record) {
	l.Completed = time.Now()
	if r.FromStart {
		l.Memory.Started = l.Completed.Add(r.Boottime - process.Boottime() - r.Asked)
	}
}

// MoveTo moves the times of the last lock to another clock, which showed completed when the atom completed.
func (l *Last) MoveTo(completed time.Time) {
	if !l.Memory.Started.IsZero() {
		l.Memory.Started = completed.Add(l.Memory.Started.Sub(l.Completed))
	}
	l.Completed = completed
}

// moved returns the last lock with its times by this machine's clock, which shows now: they are compared with a pass
// clock, which is read from this machine's clock too. A zero Completed stays zero. A store's clock may count whole
// seconds, so a run that has just completed may seem to lie a little in the future: it then counts as completed now.
func (seen *Snapshot) moved(now time.Time) record.Last {
	last, ago := seen.Last, seen.Now.Sub(seen.Last.Completed)
	if ago >= -policy.FutureSlack {
		ago = max(0, ago)
	}
	if !last.Completed.IsZero() {
		last.MoveTo(now.Add(-ago))
	}
	return last.Last
}
