// Package metrics exports each atom to Prometheus: what a rule of adlock-alerts.yml or a panel of adlock-dashboard.json
// needs, twelve series for an atom at most. The runlog loses its oldest lines, while a counter must never fall:
// Prometheus would assume a restart. So counters and other lost values continue from the file that was written the last
// time; adlock_counted_until_timestamp_seconds says which events are in it. The text is written and parsed by hand: the
// counters of Prometheus' own client end with the program, and its parser needs protocol buffers.
package metrics

import (
	"slices"
	"strings"
	"time"

	"adlock/lib/atom"
	"adlock/lib/insight/history"
	"adlock/lib/runlog"
)

// Lock is the state of an atom's lock, in the lock directory or a store.
type Lock struct {
	Atom    atom.Atom
	Since   time.Time // when the lock was acquired; zero: it is not held, or its owner and job are dead
	Overdue bool      // the owner is past its ExpireAfter or its notice
	Paused  time.Time // since when the atom is paused; zero: it is not
}

type Options struct {
	Now    time.Time
	Until  time.Time                          // events up to this time are counted
	Locks  []Lock                             // of the atoms in the lock directory and the store
	State  func(token string) history.Outcome // returns the state of a run without an end, by its token; nil: Running
	Before Values                             // the values in the previous file; nil: none
	User   string                             // the user whose lock directory this is, as a label of each series; "": no label
	Cut    time.Time                          // no event before this was read; zero: all were

	Match func(atom.Atom) bool // which atoms get series; nil: all

	// There reports whether the atom has an active or last lock; nil: all have. An atom that was acquired in a lock
	// directory and has neither is retired (adlock clear --last), and its figures are left out.
	There func(atom.Atom) bool
}

// MostOfUser is how many atoms of a user get series with --all-users. longestOfUser is how many bytes a word may have
// before its label is shortened, as what a user writes must not fill the monitoring.
const (
	MostOfUser    = 200
	longestOfUser = 200
)

func (m *Metrics) IsEmpty() bool { return len(m.atoms) == 0 }

// Settled is the least age of events that are counted into a file, as an event may be written late.
const Settled = 2 * time.Second

type Metrics struct {
	Damaged int    // lines of the runlog that cannot be read
	Users   []User // none: the metrics are of one user, without a label

	until  time.Time
	notRun int
	before Values
	atoms  []*figures
}

// User says whether the atoms of a user were read, and how many of them have no series.
type User struct {
	Name    string
	Read    bool // the lock directory and the runlog were read whole
	Omitted int

	until time.Time // the user's events up to then are counted; zero: those up to Metrics.until
}

// None returns Metrics without atoms, to which Add adds the metrics of each user.
func None(o Options) *Metrics {
	return &Metrics{until: o.Until.Truncate(time.Millisecond), before: o.Before}
}

// Kept returns the previous metrics of o.User, whose lock directory cannot be read now.
func Kept(o Options) *Metrics {
	m := &Metrics{Users: []User{{Name: o.User, until: o.since()}}}
	first := userPart(o.User) + "program="
	prefix := denied + "{" + first
	for key := range o.Before {
		if rest, is := strings.CutPrefix(key, prefix); is {
			m.atoms = append(m.atoms, figuresOf(o.Before, first+strings.TrimSuffix(rest, "}")))
		}
	}
	sortFigures(m.atoms)
	return m
}

// Add adds metrics that were collected with the same Until and Before.
func (m *Metrics) Add(other *Metrics) {
	m.Damaged += other.Damaged
	m.notRun += other.notRun
	m.atoms = append(m.atoms, other.atoms...)
	m.Users = append(m.Users, other.Users...)
}

// figures are the values of one atom. failed, denied and stuck continue the previous file's; the counts are increases.
type figures struct {
	labels string // name="value",…

	success, since time.Time
	paused         time.Time
	starts         history.Gaps
	apart          time.Duration // the interval if that of starts is unknown; 0: none
	overdue, stuck bool
	failed, denied int // in a row
	outcomes       [len(outcomes)]int
	denials        int
	endsWithLock   bool // the figures are left out if the atom has no lock
}

// usualInterval is the shortest interval such that intervals up to it cover nine tenths of the time. (With a median, a
// job that runs every ten minutes by day would raise an alert each night.) If fewer than three intervals are at least
// half as long as that, these were outages or the first nights, and only the shorter ones count. If the intervals that
// count span less than an hour, the usual one is unknown, as a person may only have tried the job.
func usualInterval(all history.Durations, otherwise time.Duration) (usual time.Duration, known bool) {
	const share, least, span = 0.9, 3, time.Hour
	for rest := all; rest.Sum() >= span; {
		usual = rest.ByTime(share)
		shorter := rest.Below((usual + 1) / 2)
		if rest.Count()-shorter.Count() >= least {
			return usual, true
		}
		rest = shorter
	}
	return otherwise, otherwise > 0
}

// Collect reads events, from history.Read. If it returns an error too, the metrics are of what could be read.
func Collect(events func(yield func(runlog.Event, error) bool), o Options) (*Metrics, error) {
	o.Until = o.Until.Truncate(time.Millisecond) // the file has milliseconds
	b := builder{user: o.User, since: o.since(), until: o.Until, now: o.Now, before: o.Before, atoms: map[atom.Atom]*figures{}}
	b.tracker.Run = b.run
	m := &Metrics{until: o.Until, before: o.Before}
	var failed error
	m.Damaged, failed = history.Each(events, b.event)
	b.counting = false // Finish guesses the ends of runs; their true ends may still come
	b.tracker.Finish(o.Now, o.State)
	for _, f := range b.atoms { // of starts far apart, a cut runlog never has the four that usualInterval needs
		if last, there := o.Before.time(series(lastSuccess, f.labels)); there && last.Before(o.Cut) && f.success.After(last) {
			f.apart = max(f.success.Sub(last), time.Duration(o.Before[series(interval, f.labels)]*float64(time.Second)))
		}
	}
	for _, l := range o.Locks {
		f := b.figures(l.Atom)
		f.since, f.overdue, f.paused = l.Since, l.Overdue, l.Paused
		f.stuck = f.stuck && !l.Since.IsZero()
	}
	m.notRun, m.atoms = b.notRun, b.sorted(&o)
	if o.User != "" {
		omitted := max(0, len(m.atoms)-MostOfUser)
		m.atoms = m.atoms[:len(m.atoms)-omitted]
		m.Users = []User{{Name: o.User, Read: true, Omitted: omitted}}
	}
	return m, failed
}

func (o *Options) since() time.Time {
	since, there := o.Before.time(series(userCountedUntil, userLabel(o.User)))
	if !there {
		since, _ = o.Before.time(countedUntil)
	}
	if since.After(o.Until) {
		return o.Until // the clock was set back
	}
	return since
}

type builder struct {
	user         string
	since, until time.Time
	now          time.Time
	counting     bool // the present event is to be counted: before does not include it yet, and it is not after until
	before       Values
	tracker      history.Tracker
	atoms        map[atom.Atom]*figures
	notRun       int
}

func (b *builder) figures(a atom.Atom) *figures {
	a.Command = "" // only locks have a command, and no event
	f := b.atoms[a]
	if f == nil {
		f = figuresOf(b.before, labels(b.user, a))
		b.atoms[a] = f
	}
	return f
}

func figuresOf(before Values, labels string) *figures {
	return &figures{
		labels: labels,
		failed: int(before[series(failures, labels)]), denied: int(before[series(denials, labels)]),
		stuck: before[series(stuck, labels)] > 0,
	}
}

func (b *builder) event(e *runlog.Event) {
	b.counting = e.Time.After(b.since) && !e.Time.After(b.until)
	a := b.tracker.Add(e)
	if a == nil {
		return
	}
	f := b.figures(a.Atom)
	switch e.Kind {
	case runlog.Acquire:
		f.starts.Next(e.Time)
		f.endsWithLock = e.Store == ""
	case runlog.Release, runlog.Deny: // an atom that was only ever denied a slot has no last lock
		f.endsWithLock = f.endsWithLock || e.Store == "" && e.Verdict != "full"
	case runlog.Missing, runlog.NotRun: // these events leave no last lock
		f.endsWithLock = b.now.Sub(e.Time) >= history.UnstartedShownFor
	}
	if b.counting {
		b.count(f, e)
	}
}

func (b *builder) count(f *figures, e *runlog.Event) {
	switch e.Kind {
	case runlog.Acquire:
		f.denied, f.stuck = 0, false
	case runlog.Deny, runlog.Stuck:
		f.stuck = f.stuck || e.Kind == runlog.Stuck
		if e.Verdict == "full" {
			f.denied++
		}
		if history.InARow(e) {
			f.denials++
		}
	case runlog.NotRun:
		b.notRun++
	}
}

// outcomes are the ends of runs that are counted: not those by a person (cleared, stopped), nor jobs that did not run.
var outcomes = [...]outcome{
	{"success", []history.Outcome{history.Succeeded}},
	{"failure", []history.Outcome{history.Failed, history.Orphaned, history.Lost}},
	{"ended", []history.Outcome{history.Ended}},
}

type outcome struct {
	label string
	which []history.Outcome
}

func (b *builder) run(a *history.Atom, r *history.Run) {
	f := b.figures(a.Atom)
	if r.Outcome == history.Succeeded {
		f.success = r.End
	}
	if !b.counting {
		return
	}
	i := slices.IndexFunc(outcomes[:], func(o outcome) bool { return slices.Contains(o.which, r.Outcome) })
	if i < 0 {
		return
	}
	f.outcomes[i]++
	if f.failed++; r.Outcome == history.Succeeded {
		f.failed = 0
	}
}
