package report

import (
	"fmt"
	"time"

	"adlock/lib/history"
	"adlock/lib/limit"
	"adlock/lib/policy"
	"adlock/lib/terminal"
)

// Advice is something worth changing, with the figures that speak for it.
type Advice struct {
	Kind string // what it is about, for programs
	Text string // for people
}

// What counts as often: below it, it may be chance.
const (
	often      = 3  // runs that went wrong
	starving   = 10 // denials in a row (design, section 8)
	spamming   = 20 // requests for each IfElapsed, and at least as many in all
	overrunned = 10 // denials because it was running
)

// advise asks every rule; each returns "" where it has nothing to say.
func (a *Atom) advise() {
	for _, rule := range [...]struct {
		kind string
		says func() string
	}{
		{"limits", a.limitsCross},
		{"expire-after", a.expireAfter},
		{"spam", a.spam},
		{"overrun", a.overrun},
		{"starving", a.starves},
		{"failing", a.fails},
		{"stuck", a.stuck},
		{"orphans", a.orphans},
		{"lost", a.lost},
	} {
		if text := rule.says(); text != "" {
			a.Advice = append(a.Advice, Advice{rule.kind, text})
		}
	}
}

func (a *Atom) limitsCross() string {
	return policy.Limits{IfElapsed: a.IfElapsed.Value, ExpireAfter: a.ExpireAfter.Value}.Warning()
}

// expireAfter: how long a run that was ended would have taken nobody knows, so
// the advice is to double the limit, as TCP does with its timeout; unless those
// that complete are so much quicker that the others must have hung.
func (a *Atom) expireAfter() string {
	ended, completed := a.Outcomes[history.Ended], a.Runtime.Count()
	now := a.ExpireAfter.Value
	if ended == 0 || now <= 0 || now == limit.Never {
		return ""
	}
	raise := "raise ExpireAfter to " + limit.Format(round(2*now)) + " or mend the job"
	longest := a.Runtime.Max()
	switch lower := round(max(4*longest, a.IfElapsed.Value, time.Minute)); {
	case completed == 0 && ended >= often:
		return fmt.Sprintf("always ended by force (%d of %d runs, ExpireAfter is %s): %s", ended, a.Runs, limit.Format(now), raise)
	case 2*ended >= a.Runs && ended >= often:
		return fmt.Sprintf("mostly ended by force (%d of %d runs, ExpireAfter is %s): %s", ended, a.Runs, limit.Format(now), raise)
	case completed > 0 && a.Runtime.Quantile(0.95) > now/2:
		return fmt.Sprintf("%d of %d runs were ended by force, and of those that completed one in twenty takes %s or more, close to ExpireAfter %s: %s",
			ended, a.Runs, terminal.Duration(a.Runtime.Quantile(0.95)), limit.Format(now), raise)
	case completed >= often && lower < now/2:
		return fmt.Sprintf("it hung %d times in %d runs and held the atom for %s each time, though none that completed took longer than %s: with ExpireAfter %s a hang is over sooner",
			ended, a.Runs, limit.Format(now), terminal.Duration(longest), limit.Format(lower))
	}
	return ""
}

func (a *Atom) spam() string {
	every, wanted := a.Asked.Quantile(0.5), a.IfElapsed.Value
	if a.TooSoon < spamming || wanted == limit.Never || wanted < spamming*every {
		return ""
	}
	return fmt.Sprintf("asked for every %s (median) though IfElapsed is %s, and denied %d times as too soon: something spams it",
		terminal.Duration(every), limit.Format(wanted), a.TooSoon)
}

func (a *Atom) overrun() string {
	takes, every := a.Runtime.Quantile(0.5), a.Asked.Quantile(0.5)
	if a.Busy < overrunned || a.Busy < a.Runs || takes <= every {
		return ""
	}
	return fmt.Sprintf("asked for every %s (medians) though a run takes %s, and denied %d times as busy: ask for it less often, or divide the work",
		terminal.Duration(every), terminal.Duration(takes), a.Busy)
}

func (a *Atom) starves() string {
	if a.Longest.Count < starving {
		return ""
	}
	cure := "look at what holds it"
	if a.Full > a.Busy {
		cure = "the program has too few slots"
	}
	return fmt.Sprintf("it starved: denied %d times in a row over %s, until %s: %s", a.Longest.Count,
		terminal.Duration(a.Longest.Last.Sub(a.Longest.First)), a.Longest.Last.Local().Format(stamp), cure)
}

func (a *Atom) fails() string {
	if a.FailedInARow < often {
		return ""
	}
	how := "status " + fmt.Sprint(a.LastStatus.Value)
	if a.LastSignal != "" {
		how = "ended by " + a.LastSignal
	}
	return fmt.Sprintf("the last %d runs that completed failed (the last one: %s): mend the job", a.FailedInARow, how)
}

func (a *Atom) stuck() string {
	if a.Stuck == 0 {
		return ""
	}
	return fmt.Sprintf("its owner had expired and could not be ended (%d times): see to it by hand, then adlock clear %s", a.Stuck, a.Name())
}

func (a *Atom) orphans() string {
	n := a.Outcomes[history.Orphaned]
	if n < often {
		return ""
	}
	return fmt.Sprintf("%d of %d runs died without a release: something kills them, or the machine goes down", n, a.Runs)
}

func (a *Atom) lost() string {
	n := a.Outcomes[history.Lost]
	if n < often {
		return ""
	}
	return fmt.Sprintf("%d of %d runs have no end in the record: something else removes locks, or lines were lost", n, a.Runs)
}

// round makes a limit one that a person would write, never shorter.
func round(d time.Duration) time.Duration {
	unit := 10 * time.Minute
	switch {
	case d <= time.Minute:
		unit = 5 * time.Second
	case d <= time.Hour:
		unit = time.Minute
	}
	return (d + unit - 1).Truncate(unit)
}
