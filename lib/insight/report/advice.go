package report

import (
	"fmt"
	"strconv"
	"time"

	"adlock/lib/insight/history"
	"adlock/lib/insight/terminal"
	"adlock/lib/limit"
	"adlock/lib/policy"
)

type advice struct {
	Kind string `json:"kind"` // the subject, for programs
	Text string `json:"text"` // for people
}

// Below these numbers there is no advice, as what was counted may be chance.
const (
	often       = 3  // runs that went wrong, or denials as too soon
	starving    = 10 // denials in a row
	spamming    = 20 // requests within one IfElapsed, and at least as many denials as too soon
	overlapping = 10 // denials as busy

	spamEvery = 20 * time.Second // requests further apart are no spam: cron asks once a minute at most
	keptAlive = 20               // more requests than this during one run are meant to keep a daemon alive: no advice
)

func (a *summary) advise() {
	for _, rule := range [...]struct {
		kind string
		says func() string
	}{
		{"limits", a.limitsCross},
		{"expire-after", a.expireAfter},
		{"overdue", a.overdueRuns},
		{"spam", a.spam},
		{"from-start", a.skips},
		{"overrun", a.overrun},
		{"starving", a.starves},
		{"failing", a.fails},
		{"stuck", a.stuck},
		{"orphans", a.orphans},
		{"lost", a.lost},
	} {
		if text := rule.says(); text != "" {
			a.Advice = append(a.Advice, advice{rule.kind, text})
		}
	}
}

func (a *summary) limitsCross() string {
	return policy.Limits{IfElapsed: a.IfElapsed.Value, ExpireAfter: a.ExpireAfter.Value, Source: a.ExpireAfterFrom}.Warning()
}

// expireAfter is about runs that an explicit limit has ended. It advises doubling the limit, or the longest completed
// runtime if that is longer, as it is unknown how long those runs would have taken. If no run has completed, it advises
// finding out why, as a longer limit may only end that job later. It never advises a shorter limit.
func (a *summary) expireAfter() string {
	ended, completed := a.Outcomes[history.Ended], a.Runtime.Count()
	now := a.ExpireAfter.Value
	if ended == 0 || now <= 0 || now == limit.Never || a.ExpireAfterFrom != policy.Said && a.ExpireAfterFrom != policy.Filed {
		return ""
	}
	raise := "raise ExpireAfter to " + limit.Format(round(2*max(now, a.Runtime.Max()))) + " or mend the job"
	switch {
	case completed == 0 && ended >= often:
		return fmt.Sprintf("no run has completed, and %d of %d were ended by force (ExpireAfter is %s): find out why the job does not end, as a longer limit may only end it later",
			ended, a.Runs, limit.Format(now))
	case 2*ended >= a.Runs && ended >= often:
		return fmt.Sprintf("mostly ended by force (%d of %d runs, ExpireAfter is %s): %s", ended, a.Runs, limit.Format(now), raise)
	case completed > 0 && a.Runtime.Quantile(0.95) > now/2:
		return fmt.Sprintf("%d of %d runs were ended by force, and of those that completed one in twenty takes %s or more, close to ExpireAfter %s: %s",
			ended, a.Runs, terminal.Duration(a.Runtime.Quantile(0.95)), limit.Format(now), raise)
	}
	return ""
}

// overdueRuns suggests no figure for the limit, as a limit that is too short ends work.
func (a *summary) overdueRuns() string {
	if a.overdue == 0 {
		return ""
	}
	cure := "if it hung, say how long it may take (--expire-after); if it is meant to, --notice never"
	switch {
	case a.isLimited() && !a.overdueLimited: // the limit is newer
		return ""
	case a.isLimited():
		cure = "its ExpireAfter is " + limit.Format(a.ExpireAfter.Value) + ": if it is meant to take so long, a longer --notice"
	}
	return fmt.Sprintf("a run was overdue (told %s, at %s at the latest): %s", times(a.overdue), terminal.Duration(a.overdueFor), cure)
}

func (a *summary) isLimited() bool {
	return a.ExpireAfter.Value > 0 && a.ExpireAfter.Value != limit.Never
}

func (a *summary) spam() string {
	every, wanted := a.Asked.Quantile(0.5), a.IfElapsed.Value
	if a.Denials.TooSoon < spamming || wanted == limit.Never || wanted < spamming*every || every > spamEvery {
		return ""
	}
	return fmt.Sprintf("asked for every %s (median) though IfElapsed is %s, and denied %d times as too soon: something spams it",
		apart(every), limit.Format(wanted), a.Denials.TooSoon)
}

// skips is about an IfElapsed as long as the period of the schedule, which makes the job skip runs.
func (a *summary) skips() string {
	if a.fromStart || a.Denials.TooSoon < often || 4*a.Denials.TooSoon < a.Runs {
		return ""
	}
	pace := policy.Pace{Period: a.Asked.Quantile(0.5), Runtime: a.Runtime.Quantile(0.5)}
	return policy.Limits{IfElapsed: a.IfElapsed.Value}.Skipping(pace)
}

func (a *summary) overrun() string {
	takes, every := a.Runtime.Quantile(0.5), a.Asked.Quantile(0.5)
	if a.Denials.Busy < overlapping || a.Denials.Busy < a.Runs || takes <= every || takes > keptAlive*every {
		return ""
	}
	return fmt.Sprintf("asked for every %s (medians) though a run takes %s, and denied %d times as busy: ask for it less often, or divide the work",
		apart(every), terminal.Duration(takes), a.Denials.Busy)
}

func apart(every time.Duration) string { return terminal.Duration(max(every, time.Millisecond)) }

func (a *summary) starves() string {
	if a.Longest.Count < starving || a.Denials.Full <= a.Denials.Busy {
		return ""
	}
	return fmt.Sprintf("it starved: denied %d times in a row over %s, until %s: the program has too few slots", a.Longest.Count,
		terminal.Duration(a.Longest.Last.Sub(a.Longest.First)), a.Longest.Last.Local().Format(time.DateTime))
}

func (a *summary) fails() string {
	if a.FailedInARow < often {
		return ""
	}
	how := "status " + fmt.Sprint(a.LastStatus.Value)
	if a.LastSignal != "" {
		how = "ended by " + a.LastSignal
	} else if a.LastStatus.Value < 0 {
		how = "ended without a release"
	}
	return fmt.Sprintf("the last %d runs failed (the last one: %s): mend the job", a.FailedInARow, how)
}

func (a *summary) stuck() string {
	if a.stuckAt.IsZero() {
		return ""
	}
	return fmt.Sprintf("its owner had expired and could not be ended (%s): see to it by hand, then adlock clear %s", times(a.stuckTimes), a.Name())
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return strconv.Itoa(n) + " times"
}

func (a *summary) orphans() string {
	return a.many(history.Orphaned, "died without a release: something kills them, or the machine goes down")
}

func (a *summary) lost() string {
	return a.many(history.Lost, "have no end in the runlog: something else removes locks, or lines were lost")
}

func (a *summary) many(outcome history.Outcome, how string) string {
	n := a.Outcomes[outcome]
	if n < often {
		return ""
	}
	return fmt.Sprintf("%d of %d runs %s", n, a.Runs, how)
}

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
