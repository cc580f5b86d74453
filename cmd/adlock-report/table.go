package main

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"adlock/lib/atom"
	"adlock/lib/cronline"
	"adlock/lib/fault"
	"adlock/lib/insight/history"
	"adlock/lib/insight/terminal"
	"adlock/lib/limit"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/runlog"
)

type column struct {
	head string
	cell func(*row) string
}

func columnsOf(rows []*row, now time.Time) []column {
	columns := []column{{"ATOM", func(r *row) string {
		text := terminal.Clean(r.String())
		if r.user != "" { // the name of another user's atom could make the table arbitrarily wide
			text = terminal.Cut(text, foreignWidth, gapMark())
		}
		return text
	}}}
	if slices.ContainsFunc(rows, func(r *row) bool { return r.host() != rows[0].host() }) {
		columns = append(columns, column{"HOST", func(r *row) string { return terminal.Clean(r.host()) }})
	}
	if rows[0].user != "" {
		columns = append(columns, column{"USER", func(r *row) string { return terminal.Clean(r.user) }})
	}
	columns = append(columns,
		column{"STATE", (*row).state},
		column{"LAST", func(r *row) string { return r.lastCell(now) }},
		column{"DUE", (*row).due},
		column{"OWNER", (*row).owner})
	if slices.ContainsFunc(rows, func(r *row) bool { return r.Slot > 0 }) {
		columns = append(columns, column{"SLOT", func(r *row) string {
			if r.Slot == 0 {
				return "-"
			}
			return strconv.Itoa(r.Slot) + " of " + strconv.Itoa(r.Slots)
		}})
	}
	columns = append(columns, column{"LIMITS", (*row).limitsCell})
	return columns
}

const (
	foreignWidth = 100
	foreignNote  = 2000 // more than a pause's reason
)

// table returns the lines of the table, each row with its notes below it. Of consecutive rows with the same
// pause, as after `pause --all`, only the first has the note on it.
func table(rows []*row, now time.Time) string {
	columns := columnsOf(rows, now)
	lines := make([][]string, len(rows)+1)
	for _, c := range columns {
		lines[0] = append(lines[0], c.head)
		for i, r := range rows {
			lines[i+1] = append(lines[i+1], c.cell(r))
		}
	}
	lines = fit(lines, dropOrder)
	paint := terminal.Colours(os.Stdout)
	state := slices.IndexFunc(lines[0], func(head string) bool { return strings.TrimSpace(head) == "STATE" })
	var w strings.Builder
	var told, before string // the user and the pause of this row and of the row above
	for i, line := range lines {
		style := terminal.Bold
		if i > 0 {
			style = stateStyles[rows[i-1].State]
		}
		if state >= 0 && state < len(line) { // a line that was cut is one cell
			cell := strings.TrimRight(line[state], " ")
			line[state] = paint.Text(style, cell) + line[state][len(cell):]
		}
		w.WriteString(joined(line) + "\n")
		if i > 0 {
			before, told = told, ""
			for _, n := range rows[i-1].notes(now) {
				if n.pause {
					told = rows[i-1].user + " " + n.text
				}
				if n.pause && told == before {
					continue
				}
				text := terminal.Clean(n.text)
				if rows[i-1].user != "" { // folding a text takes quadratic time
					text = terminal.Cut(text, foreignNote, gapMark())
				}
				for _, text := range terminal.Fold("  "+text, "    ", terminal.Limit(os.Stdout)) {
					w.WriteString(paint.Text(n.style, text) + "\n")
				}
			}
		}
	}
	return w.String()
}

func folded(text string) string {
	return strings.Join(terminal.Fold(text, "    ", terminal.Limit(os.Stdout)), "\n") + "\n"
}

var stateStyles = map[string]terminal.Style{
	"overdue": terminal.Alarm, "damaged": terminal.Alarm, "orphaned": terminal.Yellow, "unknown": terminal.Yellow,
	"waiting": terminal.Yellow, "stopped": terminal.Yellow, "paused": terminal.Yellow, "running": terminal.Green,
}

func widthsOf(lines [][]string) []int {
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for n, text := range line {
			widths[n] = max(widths[n], terminal.Columns(text))
		}
	}
	return widths
}

func joined(cells []string) string { return strings.TrimRight(strings.Join(cells, columnGap), " ") }

func gapMark() string {
	if terminal.Unicode() {
		return "…"
	}
	return "~"
}

// fit aligns the cells of a table and makes it fit the terminal. It drops the columns of order, one by one, until the
// names (the first column) have the room that they need, or namesWidth. Then it shortens names to the room left, to
// longestName at most. Finally it cuts lines that are still too long.
func fit(lines [][]string, order []string) [][]string {
	width, gap := terminal.Limit(os.Stdout), gapMark()
	names, most := widthsOf(lines)[0], longestName
	if width > 0 {
		room := func() int {
			others := 0
			for _, w := range widthsOf(lines)[1:] {
				others += len(columnGap) + w
			}
			return width - others
		}
		for _, head := range order {
			if n := slices.Index(lines[0], head); n >= 0 && room() < min(names, namesWidth) {
				for i := range lines {
					lines[i] = slices.Delete(lines[i], n, n+1)
				}
			}
		}
		most = min(longestName, max(room(), 1))
	}
	if names > most {
		shortenNames(lines[1:], most, gap)
	}
	widths := widthsOf(lines)
	for i, line := range lines {
		for n, text := range line {
			line[n] = terminal.Pad(text, widths[n])
		}
		if text := joined(line); width > 0 && terminal.Columns(text) > width {
			lines[i] = []string{terminal.Cut(text, width, gap)}
		}
	}
	return lines
}

func shortenNames(lines [][]string, width int, gap string) {
	var all []string
	for _, line := range lines {
		all = append(all, line[0])
	}
	for i, name := range terminal.Shortened(all, width, gap) {
		lines[i][0] = name
	}
}

// longestName is the greatest width of the column of names, also without a terminal: one long name widens all rows.
const longestName = 200

// namesWidth is enough room for names: no other column is dropped to give them more.
const namesWidth = 20

const columnGap = "  "

var dropOrder = []string{"LIMITS", "SLOT", "DUE", "OWNER", "HOST", "LAST"}

func (r *row) state() string {
	if r.Held {
		return r.State + " " + terminal.Age(r.Age)
	}
	return r.State
}

func (r *row) lastCell(now time.Time) string {
	if how := r.lastWord(); how != "" {
		return how + " " + terminal.Ago(now.Sub(r.Last.End))
	}
	if r.Completed.IsZero() {
		return "never"
	}
	ago := terminal.Ago(now.Sub(r.Completed))
	if r.CompletedOn != "" {
		ago += " on " + terminal.Clean(r.CompletedOn)
	}
	return ago
}

// lastWord is "failed", "ended" or "not run" for the last run. It is "" if none is recorded, if that run had another
// outcome, or if the last lock shows a later completion, of a run that the runlog lacks.
func (r *row) lastWord() string {
	if r.Last == nil || r.Completed.Sub(r.Last.End) > clockSlack {
		return ""
	}
	return lastWords[r.Last.Outcome]
}

var lastWords = [history.Outcomes]string{history.Failed: "failed", history.Ended: "ended", history.NotRun: "not run"}

func (r *row) limitsCell() string {
	if !r.LimitsKnown {
		return "-"
	}
	text := limit.Format(r.Limits.IfElapsed) + " / " + limit.Format(r.Limits.ExpireAfter)
	if r.Limits.Source == policy.Learned {
		text += " learned"
	}
	return text
}

func (r *row) owner() string {
	switch {
	case !r.Held:
		return "-"
	case r.Owner == 0:
		return "?"
	}
	owner := ofUser(r.Owner, r.UID)
	if r.user != "" { // another column has the user
		owner = strconv.Itoa(r.Owner)
	}
	if r.Node != "" {
		owner = terminal.Clean(runlog.On(r.Owner, r.Node))
	}
	if r.Readers > 1 {
		owner += " +" + strconv.Itoa(r.Readers-1)
	}
	return owner
}

func (r *row) due() string {
	switch {
	case !r.DueIn.Set:
		return "-"
	case r.DueIn.Value <= 0:
		return "now"
	case r.DueIn.Value == limit.Never:
		return "never"
	}
	return "in " + terminal.Left(r.DueIn.Value)
}

type note struct {
	style terminal.Style
	text  string
	pause bool // the note is about a pause
}

func (r *row) notes(now time.Time) (all []note) {
	add := func(style terminal.Style, text string) {
		if text != "" {
			all = append(all, note{style, text, false})
		}
	}
	if r.Atom.Command != "" && !atom.IsDigest(r.Atom.Command) {
		add(terminal.Plain, terminal.Cut("command: "+terminal.Clean(cronline.Shown(r.Atom.Command)), noteWidth, gapMark()))
	}
	add(stateStyles[r.State], r.stateNote())
	if r.watcher != 0 {
		add(terminal.Yellow, "process "+strconv.Itoa(r.watcher)+" watches whether its job works, and ends it if it is idle")
	}
	if r.paused {
		all = append(all, note{terminal.Yellow, r.Why, true})
	}
	add(terminal.Red, r.lastNote())
	add(terminal.Yellow, r.waitingNote(now))
	if warning := r.Limits.Warning(); r.LimitsKnown && warning != "" {
		add(terminal.Yellow, "warning: "+warning)
	}
	return all
}

// noteWidth is the greatest width of a note on a command: one line of a terminal.
const noteWidth = 78

func (r *row) stateNote() string {
	switch r.State {
	case "idle", "waiting", "running", "paused":
		return ""
	case "stopped":
		return "stopped: process " + strconv.Itoa(r.Still) + "; to let it go on: kill -CONT " + strconv.Itoa(r.Still)
	}
	if r.overdue != "" {
		return r.overdue
	}
	why := r.figures
	switch {
	case r.State == "damaged":
		why = r.Why
	case r.Changer != 0 && !r.Takeable:
		why = "process " + strconv.Itoa(r.Changer) + " is ending or replacing it"
	case r.silent:
		why = "it has given no sign of life for its whole lease; the next newcomer watches it for as long, and takes it"
	case r.jobLives:
		why = "its owner is dead, but processes of its job are left: " + why
	}
	if r.State == "unknown" {
		if r.user != "" {
			why += "; " + locker.Recorder{}.IfDead(r.lock) + " (as the user " + r.user + ")"
		} else {
			why += "; " + (&account{}).recorderOf(r.Atom, &locker.View{Node: r.Node}).IfDead(r.lock)
		}
	}
	return r.State + ": " + why
}

func (r *row) lastNote() string {
	if r.lastWord() == "" {
		return ""
	}
	text := "failed: status " + strconv.Itoa(r.Last.Status.Value)
	ender, self := r.Last.Ender()
	switch {
	case r.Last.Outcome == history.Ended && self:
		return "ended: by its own supervisor, after " + terminal.Age(r.Last.Held)
	case r.Last.Outcome == history.Ended:
		return "ended: by force after " + terminal.Age(r.Last.Held) + ", for process " + ender
	case r.Last.Signal != "":
		text = "failed: ended by " + r.Last.Signal
	case r.Last.Status.Value < 0:
		text = "failed: ended without a release"
	case r.Last.Outcome == history.NotRun && r.Last.Status.Value == fault.StatusUsage:
		text = "not run: status 64, its options were refused (adlock log tells why)"
	case r.Last.Outcome == history.NotRun && r.Last.Status.Value == fault.StatusDenied:
		text = "not run: status 75, its own job had the lock (adlock log tells more)"
	case r.Last.Outcome == history.NotRun:
		text = "not run: status " + strconv.Itoa(r.Last.Status.Value) + ", nothing could be locked"
	case r.Last.Unstarted:
		text += ", its command cannot be run"
	}
	if r.Failed > 1 {
		text += " (" + strconv.Itoa(r.Failed) + " in a row)"
	}
	return text
}

func (r *row) waitingNote(now time.Time) string {
	var each []string
	for _, w := range r.Waiting {
		text := runlog.On(w.pid, w.node)
		if !w.since.IsZero() {
			text += " for " + terminal.Age(now.Sub(w.since))
		}
		if w.most != limit.Never {
			text += " of " + limit.Format(w.most)
		}
		each = append(each, text)
	}
	if len(each) == 0 {
		return ""
	}
	return "waiting for " + r.waitedFor() + ": pid " + fault.Listed(each, shownWaiters)
}

// waitedFor is what the waiters wait for: a slot, the holder or, without a holder, what the first waiter logged.
func (r *row) waitedFor() string {
	switch {
	case r.isSemaphore():
		return "a slot"
	case r.Readers > 1:
		return strconv.Itoa(r.Readers) + " readers"
	case r.Held && r.Owner != 0:
		return "process " + terminal.Clean(runlog.On(r.Owner, r.Node))
	case r.paused, r.Waiting[0].verdict == string(locker.Paused):
		return "the end of a pause"
	case r.Waiting[0].verdict == string(locker.Full):
		return "a slot"
	case r.Waiting[0].verdict == string(locker.TooSoon):
		return "IfElapsed"
	}
	return "the lock"
}

const shownWaiters = 3
