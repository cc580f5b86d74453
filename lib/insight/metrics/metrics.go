// Package metrics exports each atom to Prometheus: when it last succeeded and completed, since
// when it runs, how long runs take, the denials, and the limits in force.
//
// The runlog is bounded and loses its oldest lines, while a counter must never fall: Prometheus
// would take that for a restart and count everything again. So counters continue from the file
// that was written the last time, whose adlock_counted_until_timestamp_seconds says which events
// are in it. Other values that the runlog has lost are kept from there too.
//
// The text is written and parsed by hand. Prometheus' own client keeps its counters in memory,
// where they end with the program, and its parser needs protocol buffers.
package metrics

import (
	"time"

	"adlock/lib/atom"
	"adlock/lib/insight/history"
	"adlock/lib/insight/quantile"
	"adlock/lib/runlog"
)

// Lock is what the lock directory says of an atom.
type Lock struct {
	Atom      atom.Atom
	Completed time.Time // zero: never
	Since     time.Time // when it was taken; zero: it is not held
	Overdue   bool      // its owner has run for longer than it should
}

// Options configure what is collected.
type Options struct {
	Now     time.Time
	Until   time.Time               // events up to then are counted
	Locks   []Lock                  // the atoms there are
	Running func(token string) bool // whether an acquisition without an end still runs; nil: yes
	Before  Values                  // the values written the last time; nil: none
}

// Settled is how old an event must be to be counted if counting continues the next time: a
// delayed writer may bring a line with an earlier time.
const Settled = 2 * time.Second

// Metrics are figures to be written.
type Metrics struct {
	until   time.Time
	damaged int
	before  Values
	atoms   []*figures
}

// figures are those of one atom. Its counts are added to the values of the last time.
type figures struct {
	labels string // name="value",…

	success, completed, since time.Time
	limits                    history.Limits
	interval                  quantile.Durations
	inARow                    int
	overdue                   float64

	events    map[runlog.Kind]int
	denials   history.Denials
	outcomes  [history.Outcomes]int
	durations [len(bounds) + 1]int // not cumulative
	sum       time.Duration

	started time.Time
}

// bounds of the histogram, in seconds: from a moment to a day.
var bounds = [...]float64{1, 5, 15, 60, 300, 900, 1800, 3600, 7200, 21600, 86400}

// Collect reads events, from history.Read. With an error the metrics are of
// what could be read.
func Collect(events func(yield func(runlog.Event, error) bool), o Options) (*Metrics, error) {
	o.Until = o.Until.Truncate(time.Millisecond) // as in the file
	since, _ := o.Before.time(countedUntil)
	if since.After(o.Until) {
		since = o.Until // the clock was set back
	}
	b := builder{since: since, until: o.Until, atoms: map[atom.Atom]*figures{}}
	b.teller.Run = b.run
	m := &Metrics{until: o.Until, before: o.Before}
	var failed error
	m.damaged, failed = history.Each(events, b.event)
	b.counting = false // Finish guesses the ends of runs; their true ends may still come
	b.teller.Finish(o.Now, o.Running)
	for _, l := range o.Locks {
		f := b.figures(l.Atom)
		f.completed, f.since = l.Completed, l.Since
		if l.Overdue {
			f.overdue = 1
		}
	}
	m.atoms = b.sorted()
	return m, failed
}

type builder struct {
	since, until time.Time
	counting     bool // the event at hand is not in Before yet
	teller       history.Teller
	atoms        map[atom.Atom]*figures
}

func (b *builder) figures(a atom.Atom) *figures {
	f := b.atoms[a]
	if f == nil {
		f = &figures{labels: labels(a), events: map[runlog.Kind]int{}}
		b.atoms[a] = f
	}
	return f
}

func (b *builder) event(e *runlog.Event) {
	b.counting = e.Time.After(b.since) && !e.Time.After(b.until)
	a := b.teller.Add(e)
	if a == nil {
		return
	}
	f := b.figures(a.Atom)
	if b.counting {
		f.events[e.Kind]++
	}
	switch e.Kind {
	case runlog.Acquire, runlog.Unlocked:
		f.inARow = 0
		if !f.started.IsZero() {
			f.interval.Add(e.Time.Sub(f.started))
		}
		f.started = e.Time
	case runlog.Deny, runlog.Stuck:
		if history.InARow(e) {
			f.inARow++
		}
		if b.counting {
			f.denials.Add(e)
		}
	default:
		return
	}
	f.limits.Update(e)
}

func (b *builder) run(a *history.Atom, r *history.Run) {
	f := b.figures(a.Atom)
	if r.Outcome == history.Succeeded {
		f.success = r.End
	}
	if !b.counting {
		return
	}
	f.outcomes[r.Outcome]++
	if r.Completed() {
		f.durations[bin(r.Held)]++
		f.sum += r.Held
	}
}

func bin(d time.Duration) int {
	for i, bound := range bounds {
		if d.Seconds() <= bound {
			return i
		}
	}
	return len(bounds)
}
