package supervise

import "time"

// How often is looked for what outlived the command: at first at once, then less
// and less, as each look reads the process table.
const (
	restLeast = 20 * time.Millisecond
	restMost  = time.Second
)

// wasEnded says whether the command did not come to its own end. One that died of
// a signal did not: somebody was ending the job, and may himself have been killed
// before the rest of it was dead, or the kernel ran out of memory. Nor did one that
// a newcomer is ending, whatever it made of the signal: what it has left loses
// its subreaper with this process, and whoever forks again is lost from sight.
func (r *run) wasEnded() bool {
	return r.status.Signaled() || r.job.BeingEnded != nil && r.job.BeingEnded()
}

// outlast waits, beside the loop, until nothing of the job lives or there is no
// reason any more to take it for the job, and says so on r.rest. What goes on
// after wasEnded is not something that the job meant to leave behind, and only its
// death may free the lock. Newcomers find it busy meanwhile, and end it when it
// expires; so does a signal to this process.
func (r *run) outlast() {
	r.rest = make(chan error, 1)
	go func() {
		for pause := restLeast; ; pause = min(2*pause, restMost) {
			members, err := r.place.members()
			if err != nil || len(members) == 0 || !r.wasEnded() {
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
