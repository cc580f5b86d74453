package report

import (
	"fmt"
	"strings"
	"time"

	"adlock/lib/insight/history"
	"adlock/lib/insight/terminal"
	"adlock/lib/limit"
	"adlock/lib/policy"
)

// Text is the report for people: a block of lines for each atom.
func (r *Report) Text(paint terminal.Paint) string {
	var w strings.Builder
	if r.user != "" {
		w.WriteString(paint.Text(terminal.Bold, "user "+terminal.Clean(r.user)) + ", ")
	}
	w.WriteString(r.period() + "\n")
	for _, a := range r.atoms {
		fmt.Fprintf(&w, "\n%s\n", paint.Text(terminal.Bold, terminal.Clean(a.Words()+" on "+a.Host)))
		line := func(label, text string) {
			if text != "" {
				fmt.Fprintf(&w, "  %-9s %s\n", label, text)
			}
		}
		line("runs", a.runs(paint)+fmt.Sprintf("; held %s, %.1f%% of the time", terminal.Duration(a.Held), 100*r.share(a)))
		line("runtime", a.runtime())
		line("denied", a.denied())
		line("ended", a.endings(paint))
		line("limits", a.limits())
		for _, advice := range a.Advice {
			line("advice", paint.Text(terminal.Yellow, advice.Text))
		}
	}
	return w.String()
}

func (r *Report) period() string {
	if r.from.IsZero() {
		return "until " + r.to.Local().Format(time.DateTime)
	}
	return fmt.Sprintf("%s to %s (%s)", r.from.Local().Format(time.DateTime), r.to.Local().Format(time.DateTime), terminal.Duration(r.to.Sub(r.from)))
}

var outcomeWords = [history.Outcomes]string{"running", "succeeded", "failed", "ended by force", "orphaned", "cleared", "stopped", "lost", "not run"}

var outcomeStyles = [history.Outcomes]terminal.Style{
	history.Running: terminal.Cyan, history.Failed: terminal.Red, history.Ended: terminal.Alarm,
	history.Orphaned: terminal.Yellow, history.Lost: terminal.Yellow, history.NotRun: terminal.Red,
}

func (a *summary) runs(paint terminal.Paint) string {
	var parts []string
	for outcome, n := range a.Outcomes {
		if n > 0 {
			parts = append(parts, paint.Text(outcomeStyles[outcome], fmt.Sprintf("%d %s", n, outcomeWords[outcome])))
		}
	}
	if len(parts) == 0 {
		return "0"
	}
	return fmt.Sprintf("%d: %s", a.Runs, strings.Join(parts, ", "))
}

func (a *summary) runtime() string {
	var text string
	if d := &a.Runtime; d.Count() > 0 {
		text = fmt.Sprintf("%s to %s, half within %s, 95%% within %s", terminal.Duration(d.Min()), terminal.Duration(d.Max()),
			terminal.Duration(d.Quantile(0.5)), terminal.Duration(d.Quantile(0.95)))
	}
	if a.Interval.Count() > 0 {
		if text != "" {
			text += "; "
		}
		text += "started every " + terminal.Duration(a.Interval.Quantile(0.5)) + " (median)"
	}
	return text
}

func (a *summary) denied() string {
	if a.Denials.Count() == 0 {
		return ""
	}
	text := fmt.Sprintf("%d: %s", a.Denials.Count(), a.Denials.Text())
	if a.Longest.Count > 1 {
		text += fmt.Sprintf("; %d in a row though it was due, over %s", a.Longest.Count, terminal.Duration(a.Longest.Last.Sub(a.Longest.First)))
	}
	return text
}

const shownEndings = 3

func (a *summary) endings(paint terminal.Paint) string {
	shown := a.Endings[max(0, len(a.Endings)-shownEndings):]
	var parts []string
	for _, r := range shown {
		parts = append(parts, terminal.Clean(fmt.Sprintf("%s after %s by %s on %s", r.Owner(), terminal.Age(r.Held), ender(r), r.End.Local().Format(time.DateTime))))
	}
	text := strings.Join(parts, "; ")
	if more := a.Outcomes[history.Ended] - len(shown); more > 0 && text != "" {
		text += fmt.Sprintf("; %d before", more)
	}
	return paint.Text(terminal.Red, text)
}

func ender(r *history.Run) string {
	by, self := r.Ender()
	if self {
		return "its own supervisor"
	}
	return by
}

func (a *summary) limits() string {
	if !a.IfElapsed.Set || !a.ExpireAfter.Set {
		return ""
	}
	return "IfElapsed is " + limit.Format(a.IfElapsed.Value) + ", " + policy.LimitText(a.ExpireAfter.Value, a.ExpireAfterFrom)
}
