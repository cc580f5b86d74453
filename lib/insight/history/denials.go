package history

import (
	"fmt"
	"strings"

	"adlock/lib/runlog"
)

// Denials counts requests that were turned away, by their verdict.
type Denials struct {
	Busy    int `json:"busy"`
	TooSoon int `json:"too-soon"`
	Full    int `json:"full"`
	Stuck   int `json:"stuck"` // the owner had expired and could not be ended
}

// IsDenial reports whether an event is the denial of a request.
func IsDenial(e *runlog.Event) bool { return e.Kind == runlog.Deny || e.Kind == runlog.Stuck }

// Add counts an event that is a denial.
func (d *Denials) Add(e *runlog.Event) {
	switch {
	case e.Kind == runlog.Stuck:
		d.Stuck++
	case e.Verdict == "too-soon":
		d.TooSoon++
	case e.Verdict == "full":
		d.Full++
	default:
		d.Busy++
	}
}

// InARow reports whether a denial belongs to a series that lasts until the atom is taken. Too
// soon does not: a run had completed.
func InARow(e *runlog.Event) bool { return IsDenial(e) && e.Verdict != "too-soon" }

// Count is how many they were.
func (d *Denials) Count() int { return d.Busy + d.TooSoon + d.Full + d.Stuck }

// Each yields every verdict with how often it was given, which may be never.
func (d *Denials) Each(yield func(verdict string, n int) bool) {
	_ = yield("busy", d.Busy) && yield("too-soon", d.TooSoon) && yield("full", d.Full) && yield("stuck", d.Stuck)
}

// Text tells them in words: "3 busy, 1 too soon".
func (d *Denials) Text() string {
	var parts []string
	for verdict, n := range d.Each {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.ReplaceAll(verdict, "-", " ")))
		}
	}
	return strings.Join(parts, ", ")
}
