package history

import (
	"fmt"
	"strings"

	"adlock/lib/runlog"
)

type Denials struct {
	Busy    int `json:"busy"`
	TooSoon int `json:"too-soon"`
	Full    int `json:"full"`
	Paused  int `json:"paused"`
	Stuck   int `json:"stuck"` // the owner had expired, but could not be ended
}

// IsDenial reports whether e denies a request. A stuck event with a token does not: an owner logs it about its own job.
func IsDenial(e *runlog.Event) bool {
	return e.Kind == runlog.Deny || e.Kind == runlog.Stuck && e.Token == ""
}

// Add counts e. The caller has checked that e is a denial (IsDenial).
func (d *Denials) Add(e *runlog.Event) {
	switch {
	case e.Kind == runlog.Stuck:
		d.Stuck++
	case e.Verdict == "too-soon":
		d.TooSoon++
	case e.Verdict == "full":
		d.Full++
	case e.Verdict == "paused":
		d.Paused++
	default:
		d.Busy++
	}
}

// InARow reports whether e belongs to a series of denials, which lasts until the atom is acquired. A denial as too soon
// does not, as a run had completed. Nor does a denial as paused, as a person wanted that.
func InARow(e *runlog.Event) bool {
	return IsDenial(e) && e.Verdict != "too-soon" && e.Verdict != "paused"
}

func (d *Denials) Count() int { return d.Busy + d.TooSoon + d.Full + d.Paused + d.Stuck }

// Each yields each verdict and the number of its denials, even if the number is 0.
func (d *Denials) Each(yield func(verdict string, n int) bool) {
	_ = yield("busy", d.Busy) && yield("too-soon", d.TooSoon) && yield("full", d.Full) && yield("paused", d.Paused) && yield("stuck", d.Stuck)
}

// Text describes the denials in words: "3 busy, 1 too soon".
func (d *Denials) Text() string {
	var parts []string
	for verdict, n := range d.Each {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.ReplaceAll(verdict, "-", " ")))
		}
	}
	return strings.Join(parts, ", ")
}
