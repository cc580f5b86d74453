package policy

import (
	"time"

	"adlock/lib/limit"
)

// Pace is how often an atom is asked for and how long it runs: medians of the past, or the schedule's period.
type Pace struct {
	Period  time.Duration // from one request to the next; 0: not known
	Runtime time.Duration // from the start of a run to its end
}

// Skipping returns a warning if IfElapsed, counted from completion, is about as long as the period of the
// requests: every second start is then denied. It returns "" if IfElapsed is clearly longer, because such denials
// are intended. It also returns "" if IfElapsed is over before the next request, or if runs outlast the period.
func (l Limits) Skipping(p Pace) string {
	if l.IfElapsed <= 0 || l.IfElapsed == limit.Never ||
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

// punctual is how much too early or too late cron may start a job.
const punctual = time.Second
