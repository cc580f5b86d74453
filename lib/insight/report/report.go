// Package report summarises the runlog over a period: a Report has the figures of each atom, and a Chart draws its runs.
// Each reads the runlog once, and a Report keeps only a few durations for each run and request.
package report

import (
	"cmp"
	"slices"
	"time"

	"adlock/lib/atom"
	"adlock/lib/insight/history"
	"adlock/lib/policy"
	"adlock/lib/runlog"
)

// Report is what the runlogs of one directory have of a period.
type Report struct {
	user     string     // whose runlogs they are; "": the report is of one user only
	from, to time.Time  // from: Options.Since or, if that is later, the first event recorded
	atoms    []*summary // with at least one event or run in the period; those that need a person come first
	events   int        // of these atoms in the period
	Damaged  int        // lines that could not be read, also outside the period
}

type summary struct {
	*history.Atom

	Runs     int                   // those that ended in the period or have not ended
	Outcomes [history.Outcomes]int // of these runs, and of those that were not run
	Held     time.Duration         // for how much of the period at least one run held the atom
	Runtime  history.Durations     // of the runs that completed
	Interval history.Gaps          // from one start to the next
	Asked    history.Gaps          // from one request to the next, granted or not

	Denials history.Denials
	Longest series
	Endings []*history.Run // the last runs that were ended by force, at most keptEndings

	// These are the latest limits in force.
	IfElapsed, ExpireAfter runlog.Opt[time.Duration]
	ExpireAfterFrom        policy.Source

	FailedInARow int             // how many runs failed since the last success
	LastOutcome  history.Outcome // of the last run that has ended
	LastStatus   runlog.Opt[int] // of the last run that failed
	LastSignal   string          // the signal that ended that run; "": none

	Advice []advice

	spans          []span    // of the runs
	fromStart      bool      // IfElapsed counts from the start
	stuckAt        time.Time // of the last stuck event; zero: there is none since the last acquire, release or clear
	stuckTimes     int       // how many stuck events there were, of newcomers or of the owner's own supervisor
	overdue        int       // how often a run was reported as overdue
	overdueFor     time.Duration
	overdueLimited bool // an ExpireAfter was in force at the last overdue event
	series         series
}

// series are the requests that were denied in a row although the atom was due.
type series struct {
	Count       int
	First, Last time.Time
}

const keptEndings = 10

type Options struct {
	Since time.Time                          // zero: all that is recorded
	Now   time.Time                          // the end of the period
	Match func(atom.Atom) bool               // which atoms are included; nil: all
	State func(token string) history.Outcome // the state of a run without an end, by its token; nil: Running
	User  string                             // the user whose runlog this is, if there are several
}

// Limit keeps the first most atoms, and returns how many it dropped.
func (r *Report) Limit(most int) (dropped int) {
	dropped = max(0, len(r.atoms)-most)
	r.atoms = r.atoms[:len(r.atoms)-dropped]
	return dropped
}

func (r *Report) IsEmpty() bool { return len(r.atoms) == 0 }

// Build reads events, from history.Read. If it returns an error too, the report is of what could be read.
func Build(events func(yield func(runlog.Event, error) bool), o Options) (*Report, error) {
	b := builder{options: o, report: &Report{user: o.User, from: o.Since, to: o.Now}, atoms: map[*history.Atom]*summary{}}
	b.tracker = history.Tracker{Run: b.run, Match: o.Match}
	var failed error
	b.report.Damaged, failed = history.Each(events, b.event)
	b.tracker.Finish(o.Now, o.State)
	b.finish()
	return b.report, failed
}

type builder struct {
	options Options
	report  *Report
	tracker history.Tracker
	atoms   map[*history.Atom]*summary
	begun   bool
}

func (b *builder) event(e *runlog.Event) {
	if !b.begun && !e.Time.After(b.options.Now) {
		b.begun = true
		if e.Time.After(b.report.from) {
			b.report.from = e.Time
		}
	}
	source := b.tracker.Add(e)
	if e.Time.Before(b.options.Since) || source == nil {
		return
	}
	b.report.events++
	b.atom(source).count(e)
}

func (b *builder) atom(source *history.Atom) *summary {
	if b.atoms[source] == nil {
		b.atoms[source] = &summary{Atom: source}
	}
	return b.atoms[source]
}

func (a *summary) count(e *runlog.Event) {
	switch e.Kind {
	case runlog.Acquire:
		a.Interval.Next(e.Time)
		a.stuckAt, a.series = time.Time{}, series{}
	case runlog.Stuck:
		a.stuckAt = e.Time
		a.stuckTimes++
	case runlog.Release, runlog.Clear:
		a.stuckAt = time.Time{}
	case runlog.Overdue:
		a.overdue, a.overdueFor = a.overdue+1, max(a.overdueFor, e.Age.Value)
		a.overdueLimited = a.isLimited()
	}
	denied := history.IsDenial(e)
	if denied {
		a.Denials.Add(e)
	}
	if history.InARow(e) {
		a.prolong(e.Time)
	}
	if denied || e.Kind == runlog.Acquire {
		a.Asked.Next(e.Time)
		if e.IfElapsed.Set {
			a.IfElapsed, a.fromStart = e.IfElapsed, e.FromStart
		}
		if e.ExpireAfter.Set {
			a.ExpireAfter, a.ExpireAfterFrom = e.ExpireAfter, policy.Source(e.ExpireAfterFrom)
		}
	}
}

func (a *summary) prolong(at time.Time) {
	if a.series.Count == 0 {
		a.series.First = at
	}
	a.series.Count++
	a.series.Last = at
	if a.series.Count > a.Longest.Count {
		a.Longest = a.series
	}
}

// run counts a run that ended in the period or has not ended.
func (b *builder) run(source *history.Atom, r *history.Run) {
	if r.Outcome != history.Running && r.End.Before(b.options.Since) {
		return
	}
	a := b.atom(source)
	if a.Outcomes[r.Outcome]++; r.Outcome != history.NotRun {
		a.Runs++
	}
	a.spans = append(a.spans, b.within(r))
	switch r.Outcome {
	case history.Succeeded:
		a.FailedInARow = 0
	case history.Failed:
		a.FailedInARow++
		a.LastStatus, a.LastSignal = r.Status, r.Signal
	case history.Ended:
		a.Endings = append(a.Endings, r)
		a.Endings = a.Endings[max(0, len(a.Endings)-keptEndings):]
	}
	if r.Outcome != history.Running {
		a.LastOutcome = r.Outcome
	}
	if r.Completed() {
		a.Runtime.Add(r.Held)
	}
}

type span struct{ from, until time.Duration } // since the beginning of the period

func (b *builder) within(r *history.Run) span {
	end := r.End
	if r.Outcome == history.Running {
		end = b.report.to
	}
	until := end.Sub(b.report.from)
	return span{max(0, until-r.Held), until}
}

func lengthOfUnion(spans []span) (sum time.Duration) {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	last := time.Duration(0)
	for _, s := range spans {
		sum += max(0, s.until-max(last, s.from))
		last = max(last, s.until)
	}
	return sum
}

func (b *builder) finish() {
	for _, source := range b.tracker.Atoms() {
		if a := b.atoms[source]; a != nil {
			a.Held = lengthOfUnion(a.spans)
			a.advise()
			b.report.atoms = append(b.report.atoms, a)
		}
	}
	slices.SortStableFunc(b.report.atoms, func(a, b *summary) int { return cmp.Compare(b.trouble(), a.trouble()) })
}

// trouble is 2 if the last run went wrong or a newcomer could not end an owner, 1 if there is advice, otherwise 0.
func (a *summary) trouble() int {
	switch {
	case slices.Contains([]history.Outcome{history.Failed, history.Ended, history.Orphaned, history.Lost, history.NotRun}, a.LastOutcome), a.Denials.Stuck > 0:
		return 2
	case len(a.Advice) > 0:
		return 1
	}
	return 0
}

func (r *Report) share(a *summary) float64 {
	period := r.to.Sub(r.from)
	if period <= 0 {
		return 0
	}
	return min(1, float64(a.Held)/float64(period))
}
