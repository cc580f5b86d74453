package policy

import (
	"time"

	"adlock/lib/limit"
)

// Pace is how often an atom is asked for, and how long it runs: medians of past ones.
type Pace struct {
	Period  time.Duration // from one request to the next; 0: not known
	Runtime time.Duration // of a run
}

// Skipping warns of an interval, counted from completion, that is as long as the period of the
// requests: a run that started a period ago completed later than that, so every second start is
// denied. It returns "" if that is not so. An interval that is much longer than the period is
// meant to deny, and one that is shorter than the pause between two runs denies nothing.
func (l Limits) Skipping(p Pace) string {
	if p.Period <= 0 || l.IfElapsed <= 0 || l.IfElapsed == limit.Never ||
		p.Period < l.IfElapsed-fromStartSlack(l.IfElapsed) || p.Runtime >= p.Period || p.Period-p.Runtime >= l.IfElapsed+punctual {
		return ""
	}
	step := time.Second
	if p.Period < step {
		step = time.Millisecond
	}
	return "asked for every " + limit.Format(max(step, p.Period.Round(step))) + ", and IfElapsed " + limit.Format(l.IfElapsed) +
		" counts from completion: every second start is denied; --from-start (ADLOCK_FROM_START=1) counts from the start"
}

// punctual is how early or late cron starts a job.
const punctual = time.Second
