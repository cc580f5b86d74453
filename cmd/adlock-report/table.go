package main

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"adlock/lib/learn"
	"adlock/lib/limit"
	"adlock/lib/policy"
	"adlock/lib/terminal"
)

// table is what status shows to people. What wants attention stands out, by
// words too, and says why in a line of its own.
func table(rows []*row, now time.Time) string {
	paint := terminal.Colours(os.Stdout)
	lines := [][]string{{"ATOM", "STATE", "SINCE", "COMPLETED", "DUE", "OWNER", "LIMITS"}}
	for _, r := range rows {
		lines = append(lines, r.cells(now))
	}
	if slices.ContainsFunc(rows, (*row).learned) {
		lines[0] = append(lines[0], "LEARNED")
		for i, r := range rows {
			lines[i+1] = append(lines[i+1], r.learnedCell())
		}
	}
	widths := widthsOf(lines)
	if terminal.Is(os.Stdout) {
		fit(widths, terminal.Width(os.Stdout))
	}
	gap := "~"
	if terminal.Unicode() {
		gap = "…"
	}
	var w strings.Builder
	for i, line := range lines {
		for n, text := range line {
			line[n] = terminal.Pad(terminal.Cut(text, widths[n], gap), widths[n])
		}
		style := terminal.Bold
		if i > 0 {
			style = stateStyle(rows[i-1].State)
		}
		line[1] = paint.Text(style, line[1])
		w.WriteString(strings.TrimRight(strings.Join(line, "  "), " ") + "\n")
		if i > 0 {
			if note := rows[i-1].note(); note != "" {
				w.WriteString("  " + paint.Text(style, terminal.Clean(note)) + "\n")
			}
		}
	}
	return w.String()
}

func stateStyle(state string) terminal.Style {
	switch state {
	case "overdue", "damaged":
		return terminal.Alarm
	case "orphaned", "unknown":
		return terminal.Yellow
	case "running":
		return terminal.Green
	}
	return terminal.Plain
}

func widthsOf(lines [][]string) []int {
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for n, text := range line {
			widths[n] = max(widths[n], utf8.RuneCountInString(text))
		}
	}
	return widths
}

// fit takes what is too wide for the terminal from the first column, but leaves
// it enough to be recognised by.
func fit(widths []int, width int) {
	total := 2 * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	widths[0] = max(min(widths[0], 16), widths[0]-max(0, total-width))
}

func (r *row) cells(now time.Time) []string {
	since, owner, limits := "-", "-", "-"
	if r.Held {
		since = terminal.Duration(r.Age) + " ago"
		owner = r.owner()
	}
	completed := "never"
	if !r.Completed.IsZero() {
		completed = terminal.Duration(now.Sub(r.Completed)) + " ago"
	}
	if r.LimitsKnown {
		limits = both(r.Limits.IfElapsed, r.Limits.ExpireAfter)
	}
	return []string{terminal.Clean(r.name()), r.State, since, completed, r.due(), owner, limits}
}

// both are IfElapsed and ExpireAfter in one cell.
func both(ifElapsed, expireAfter time.Duration) string {
	return limit.Format(ifElapsed) + " / " + limit.Format(expireAfter)
}

// learned says whether the atom has learned limits (adlock tune explains them).
func (r *row) learned() bool { return r.Learned != learn.State{} }

func (r *row) learnedCell() string {
	if !r.learned() {
		return "-"
	}
	return both(r.Learned.IfElapsed(), r.Learned.ExpireAfter(r.Limits.IfElapsed))
}

func (r *row) owner() string {
	if r.Owner == 0 {
		return "?"
	}
	user := userName(r.UID)
	if user == "" {
		user = strconv.Itoa(r.UID)
	}
	return strconv.Itoa(r.Owner) + " " + user
}

// due is when IfElapsed will have passed.
func (r *row) due() string {
	switch {
	case !r.DueIn.Set:
		return "-"
	case r.DueIn.Value <= 0:
		return "now"
	case r.DueIn.Value == limit.Never:
		return "never"
	}
	return "in " + terminal.Duration(r.DueIn.Value)
}

// note says why a state wants attention; else what is wrong with the limits.
func (r *row) note() string {
	switch r.State {
	case "idle", "running":
		return r.limitsNote()
	}
	_, why, judged := strings.Cut(r.Why, ": ") // the verdict and its figures
	switch {
	case r.State == "damaged" || !judged:
		why = r.Why
	case r.State == "orphaned" && !r.Takeable:
		why = "its owner is dead, but not all of its job: " + why
	}
	if r.State == "unknown" {
		why += "; if you know that it is dead: adlock clear " + r.Files
	}
	return r.State + ": " + why
}

func (r *row) limitsNote() string {
	if !r.LimitsKnown {
		return ""
	}
	return policy.Limits{IfElapsed: r.Limits.IfElapsed, ExpireAfter: r.Limits.ExpireAfter}.Warning()
}
