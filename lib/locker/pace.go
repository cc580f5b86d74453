package locker

import (
	"slices"
	"time"

	"adlock/lib/atom"
	"adlock/lib/policy"
	"adlock/lib/runlog"
)

const paceRequests = 9

// Pace returns how often the atom was asked for lately and how long it ran, from the end of the runlog; 0 if unknown.
func (rec Recorder) Pace(a atom.Atom) policy.Pace {
	var asked []time.Time // the newest first
	var took []time.Duration
	for e := range rec.recent(a) {
		switch e.Kind {
		case runlog.Acquire, runlog.Deny:
			asked = append(asked, e.Time.Add(-e.Wait))
		case runlog.Release:
			took = append(took, e.Duration.Value)
		}
		if len(asked) == paceRequests {
			break
		}
	}
	var apart []time.Duration
	for i := 1; i < len(asked); i++ {
		apart = append(apart, asked[i-1].Sub(asked[i]))
	}
	return policy.Pace{Period: median(apart), Runtime: median(took)}
}

func median(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}
