package supervise

import (
	"strings"
	"time"
)

// Export adds an entry ("NAME=value") to the job's environment, in place of one with that name:
// for a value that is known only when the lock is held. Between Prepare and Run, once.
func (s *Supervisor) Export(entry string) {
	if s.gate != nil {
		s.gate.entry = entry
	}
	s.job.Env = withEntry(s.job.Env, entry)
}

func withEntry(env []string, entry string) []string {
	if entry == "" {
		return env
	}
	name, _, _ := strings.Cut(entry, "=")
	kept := []string{entry} // of two with one name, getenv(3) returns the first
	for _, e := range env {
		if !strings.HasPrefix(e, name+"=") {
			kept = append(kept, e)
		}
	}
	return kept
}

// endAsked ends the job at the request of Job.End.
func (r *run) endAsked(pause time.Duration) {
	if r.ending != nil {
		return
	}
	r.told = true
	r.job.Pause = pause
	r.end(0)
}
