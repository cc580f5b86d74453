package supervise

import "time"

// How often is looked for what outlived the command: at first at once, then less
// and less, as each look reads the process table.
const (
	restLeast = 20 * time.Millisecond
	restMost  = time.Second
)

// outlast waits, beside the loop, until nothing of the job lives, and says so on
// r.rest. A command that died of a signal did not come to its own end: somebody
// was ending the job, and may himself have been killed before the rest of it was
// dead, or the kernel ran out of memory. What goes on then is the job, not
// something that it meant to leave behind, and only its death may free the lock.
// Newcomers find it busy meanwhile, and end it when it expires; so does a signal
// to this process.
func (r *run) outlast() {
	r.rest = make(chan error, 1)
	go func() {
		for pause := restLeast; ; pause = min(2*pause, restMost) {
			members, err := r.place.members()
			if err != nil || len(members) == 0 {
				r.rest <- err
				return
			}
			time.Sleep(pause)
		}
	}()
}
