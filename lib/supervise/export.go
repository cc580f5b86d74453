package supervise

import (
	"slices"
	"strings"
	"time"
)

// Export sets an entry ("NAME=value") of the job's environment, for a value that is known only when
// the lock is held. Call it between Prepare and Run.
func (s *Supervisor) Export(entry string) {
	if s.gate != nil {
		s.gate.entries = append(s.gate.entries, entry)
	}
	s.job.Env = withEntry(s.job.Env, entry)
}

func withEntry(env []string, entry string) []string {
	name, _, _ := strings.Cut(entry, "=")
	kept := slices.DeleteFunc(slices.Clone(env), func(e string) bool { return strings.HasPrefix(e, name+"=") })
	return append([]string{entry}, kept...) // if a name appears twice, getenv(3) returns the first entry
}

func (r *run) endAsked(pause time.Duration) {
	if r.ending != nil {
		return
	}
	r.endSent = true
	r.job.Pause = pause
	r.doom()
}
