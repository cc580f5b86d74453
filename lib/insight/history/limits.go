package history

import (
	"time"

	"adlock/lib/policy"
	"adlock/lib/runlog"
)

// Limits are the limits of an atom that its events name.
type Limits struct {
	IfElapsed, ExpireAfter runlog.Opt[time.Duration]
	ExpireAfterFrom        policy.Source
}

// Update takes the limits of an event, which must come in their order.
func (l *Limits) Update(e *runlog.Event) {
	if e.IfElapsed.Set {
		l.IfElapsed = e.IfElapsed
	}
	if e.ExpireAfter.Set {
		l.ExpireAfter, l.ExpireAfterFrom = e.ExpireAfter, policy.Source(e.ExpireAfterFrom)
	}
}
