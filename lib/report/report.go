// Package report sums the runlog up: for each atom over a period how often it
// ran, how that went, how long it took, who was turned away and why, and what
// would be worth changing. It reads the record once and keeps figures, not
// events, so its memory depends on the number of atoms alone.
package report

import (
	"time"

	"adlock/lib/history"
	"adlock/lib/quantile"
	"adlock/lib/runlog"
)

// Report is what the records of one directory tell of a period.
type Report struct {
	From, To time.Time // From is the first event's time where the record begins later than was asked for
	Atoms    []*Atom   // those of which something was recorded in the period, sorted
	Lines    int       // events in the period
	Damaged  int       // lines that could not be read, whenever
}

// Atom is what became of one atom.
type Atom struct {
	*history.Atom

	Runs     int                   // acquisitions that ended in the period or have not ended
	Outcomes [history.Outcomes]int // of these
	Held     time.Duration         // how much of the period it was held
	Runtime  quantile.Digest       // of the runs that completed
	Interval quantile.Digest       // from one start to the next
	Asked    quantile.Digest       // from one request to the next, granted or not

	Busy, TooSoon, Full, Stuck int // requests turned away; Stuck: those that could not end the owner
	Longest                    Series
	Endings                    []Ending // the last ones, at most keptEndings

	IfElapsed, ExpireAfter runlog.Opt[time.Duration] // the latest in force
	FailedInARow           int                       // runs up to the last
	LastStatus             runlog.Opt[int]           // of the last run that completed
	LastSignal             string

	Advice []Advice

	started, asked time.Time
	series         Series
}

// Series is requests denied one after the other though the atom was due, with no
// acquisition in between.
type Series struct {
	Count       int
	First, Last time.Time
}

// Ending is one owner that was ended by force.
type Ending struct {
	At    time.Time
	Owner int           // its pid
	By    int           // the newcomer's pid, or the supervisor's own
	Age   time.Duration // how long it had held the atom
}

const keptEndings = 10

// Options say what a report is about.
type Options struct {
	Since   time.Time                // zero: all that is recorded
	Now     time.Time                // the end of the period
	Match   func(*history.Atom) bool // nil: every atom
	Running func(token string) bool  // whether an acquisition without an end still runs; nil: yes
}

// Build reads events, from history.Read. With an error the report is of what
// could be read.
func Build(events func(yield func(runlog.Event, error) bool), o Options) (*Report, error) {
	b := builder{options: o, report: &Report{From: o.Since, To: o.Now}, atoms: map[*history.Atom]*Atom{}}
	b.teller.Run = b.run
	var failed error
	b.report.Damaged, failed = history.Each(events, b.event)
	b.teller.Finish(o.Now, o.Running)
	b.finish()
	return b.report, failed
}

type builder struct {
	options Options
	report  *Report
	teller  history.Teller
	atoms   map[*history.Atom]*Atom
	begun   bool
}

func (b *builder) event(e *runlog.Event) {
	inside := !e.Time.Before(b.options.Since)
	if inside && !b.begun {
		b.report.From, b.begun = later(b.report.From, e.Time), true
	}
	source := b.teller.Add(e)
	if !inside || source == nil {
		return
	}
	if a := b.atom(source); a != nil {
		b.report.Lines++
		a.count(e)
	}
}

// atom is where the figures of an atom are; nil for one that was not asked for.
func (b *builder) atom(source *history.Atom) *Atom {
	a, known := b.atoms[source]
	if !known {
		if b.options.Match == nil || b.options.Match(source) {
			a = &Atom{Atom: source}
		}
		b.atoms[source] = a
	}
	return a
}

func (a *Atom) count(e *runlog.Event) {
	switch e.Kind {
	case runlog.Acquire:
		if !a.started.IsZero() {
			a.Interval.Add(e.Time.Sub(a.started))
		}
		a.started = e.Time
		a.series = Series{}
	case runlog.Deny:
		a.deny(e)
	case runlog.Stuck:
		a.Stuck++
		a.prolong(e.Time)
	default:
		return
	}
	if !a.asked.IsZero() {
		a.Asked.Add(e.Time.Sub(a.asked))
	}
	a.asked = e.Time
	if e.IfElapsed.Set {
		a.IfElapsed = e.IfElapsed
	}
	if e.ExpireAfter.Set {
		a.ExpireAfter = e.ExpireAfter
	}
}

func (a *Atom) deny(e *runlog.Event) {
	switch e.Verdict {
	case "too-soon":
		a.TooSoon++
		return
	case "full":
		a.Full++
	default:
		a.Busy++
	}
	a.prolong(e.Time)
}

func (a *Atom) prolong(at time.Time) {
	if a.series.Count == 0 {
		a.series.First = at
	}
	a.series.Count++
	a.series.Last = at
	if a.series.Count > a.Longest.Count {
		a.Longest = a.series
	}
}

// run is told each run when it has ended, also of those before the period.
func (b *builder) run(source *history.Atom, r *history.Run) {
	if r.Outcome != history.Running && r.End.Before(b.options.Since) {
		return
	}
	a := b.atom(source)
	if a == nil {
		return
	}
	a.Runs++
	a.Outcomes[r.Outcome]++
	a.Held += b.within(r)
	switch r.Outcome {
	case history.Succeeded:
		a.FailedInARow = 0
	case history.Failed:
		a.FailedInARow++
	case history.Ended:
		a.ended(r)
	}
	if r.Completed() {
		a.Runtime.Add(r.Held)
		a.LastStatus, a.LastSignal = r.Status, r.Signal
	}
}

// within is how much of the period the run held its atom.
func (b *builder) within(r *history.Run) time.Duration {
	end := r.End
	if r.Outcome == history.Running {
		end = b.report.To
	}
	return max(0, min(r.Held, end.Sub(b.report.From)))
}

func (a *Atom) ended(r *history.Run) {
	if len(a.Endings) == keptEndings {
		a.Endings = append(a.Endings[:0], a.Endings[1:]...)
	}
	a.Endings = append(a.Endings, Ending{At: r.End, Owner: r.PID, By: r.By, Age: r.Held})
}

func (b *builder) finish() {
	for _, source := range b.teller.Atoms() {
		if a := b.atoms[source]; a != nil {
			a.advise()
			b.report.Atoms = append(b.report.Atoms, a)
		}
	}
}

// Share is the part of the period, 0 to 1, that the atom was held.
func (r *Report) Share(a *Atom) float64 {
	period := r.To.Sub(r.From)
	if period <= 0 {
		return 0
	}
	return min(1, float64(a.Held)/float64(period))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
