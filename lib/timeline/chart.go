// Package timeline draws figure 2 of the 1997 paper from what really happened:
// a lane for each atom, its runs as bars, requests that were denied as ticks,
// and the windows in which IfElapsed denies and ExpireAfter has not passed yet.
// The same chart goes to a terminal or into an SVG file.
package timeline

import (
	"time"

	"adlock/lib/history"
	"adlock/lib/runlog"
)

// Chart is a period cut into columns of equal length. What cannot be told apart
// at that resolution is counted, not kept: a chart's size depends on its atoms
// and columns, however long the record.
type Chart struct {
	From, To time.Time
	Columns  int
	Lanes    []*Lane
	Damaged  int // lines of the record that could not be read
}

// Lane is what became of one atom.
type Lane struct {
	*history.Atom
	Bars  []*Bar
	Ticks []*Tick // in the order of their columns
}

// Bar is a run, or several that began and ended within one column.
type Bar struct {
	history.Run
	Count int       // runs; Held is of all of them
	End   time.Time // of the last of them; the end of the period while it runs
	Until time.Time // when the next run began; the chart's end if none did
}

// Due is when IfElapsed had passed after the bar; its end where it does not count.
func (b *Bar) Due() time.Time { return after(b.End, b.IfElapsed.Value, b.Until) }

// Expiry is when ExpireAfter had passed since the bar's beginning.
func (b *Bar) Expiry() time.Time {
	if !b.ExpireAfter.Set {
		return b.Start
	}
	return after(b.Start, b.ExpireAfter.Value, b.Until)
}

// after is at+d, at most until; d may be limit.Never.
func after(at time.Time, d time.Duration, until time.Time) time.Time {
	if d >= until.Sub(at) {
		return until
	}
	return at.Add(d)
}

// Tick is the requests that were denied within one column.
type Tick struct {
	Column                     int
	First, Last                time.Time
	Busy, TooSoon, Full, Stuck int
}

// Count is how many they were.
func (t *Tick) Count() int { return t.Busy + t.TooSoon + t.Full + t.Stuck }

// Options say what is drawn.
type Options struct {
	Since, Until time.Time                // the period; it begins with the first event where that is later than Since
	Margin       bool                     // draw a little beyond Until: the last run is then not at the edge
	Columns      int                      // the resolution
	Match        func(*history.Atom) bool // nil: every atom
	Running      func(token string) bool  // whether an acquisition without an end still runs; nil: yes
}

// Build reads events, from history.Read. With an error the chart is of what
// could be read. Chart.Lanes is empty where nothing happened in the period.
func Build(events func(yield func(runlog.Event, error) bool), o Options) (*Chart, error) {
	b := builder{options: o, lanes: map[*history.Atom]*Lane{}}
	b.chart = &Chart{From: o.Since, To: o.Until, Columns: max(1, o.Columns)}
	b.teller.Run = b.run
	var failed error
	b.chart.Damaged, failed = history.Each(events, b.event)
	b.teller.Finish(o.Until, o.Running)
	b.finish()
	return b.chart, failed
}

type builder struct {
	options Options
	chart   *Chart
	teller  history.Teller
	lanes   map[*history.Atom]*Lane
	begun   bool
}

func (b *builder) event(e *runlog.Event) {
	if e.Time.After(b.options.Until) {
		return // what is after the period: its runs are still running there
	}
	inside := !e.Time.Before(b.options.Since)
	if inside && !b.begun {
		b.begin(e.Time)
	}
	source := b.teller.Add(e)
	if !inside || source == nil || e.Kind != runlog.Deny && e.Kind != runlog.Stuck {
		return
	}
	if lane := b.lane(source); lane != nil {
		lane.tick(b.chart.column(e.Time), e)
	}
}

// begin lets the chart begin with its first event, and a little before, so that
// it does not stick to the edge; but where a run was on already, at Since.
func (b *builder) begin(first time.Time) {
	b.begun = true
	margin := b.options.Until.Sub(first) / 50
	if start := first.Add(-margin); len(b.teller.Atoms()) == 0 && start.After(b.chart.From) {
		b.chart.From = start
	}
	if b.options.Margin {
		b.chart.To = b.options.Until.Add(margin)
	}
}

// lane is the atom's lane; nil for one that was not asked for.
func (b *builder) lane(source *history.Atom) *Lane {
	lane, known := b.lanes[source]
	if !known {
		if b.options.Match == nil || b.options.Match(source) {
			lane = &Lane{Atom: source}
		}
		b.lanes[source] = lane
	}
	return lane
}

func (l *Lane) tick(column int, e *runlog.Event) {
	var t *Tick
	if n := len(l.Ticks); n > 0 && l.Ticks[n-1].Column >= column {
		t = l.Ticks[n-1] // times may go back a little
	} else {
		t = &Tick{Column: column, First: e.Time}
		l.Ticks = append(l.Ticks, t)
	}
	t.Last = e.Time
	switch {
	case e.Kind == runlog.Stuck:
		t.Stuck++
	case e.Verdict == "too-soon":
		t.TooSoon++
	case e.Verdict == "full":
		t.Full++
	default:
		t.Busy++
	}
}

func (b *builder) run(source *history.Atom, r *history.Run) {
	end := r.End
	if r.Outcome == history.Running {
		end = b.options.Until
	}
	if end.Before(b.chart.From) {
		return
	}
	lane := b.lane(source)
	if lane == nil {
		return
	}
	bar := &Bar{Run: *r, Count: 1, End: end, Until: b.chart.To}
	if n := len(lane.Bars); n > 0 {
		last := lane.Bars[n-1]
		if b.chart.merges(last, bar) {
			last.Count, last.Held, last.End = last.Count+1, last.Held+r.Held, end
			return
		}
		last.Until = later(r.Start, last.End)
	}
	lane.Bars = append(lane.Bars, bar)
}

// merges says whether two bars look like one and mean the same.
func (c *Chart) merges(last, next *Bar) bool {
	return last.Outcome == next.Outcome && last.Outcome != history.Ended &&
		c.column(last.Start) == c.column(next.End)
}

func (b *builder) finish() {
	for _, source := range b.teller.Atoms() {
		if lane := b.lanes[source]; lane != nil && len(lane.Bars)+len(lane.Ticks) > 0 {
			b.chart.Lanes = append(b.chart.Lanes, lane)
		}
	}
}

// at is where t lies in the chart, 0 to 1.
func (c *Chart) at(t time.Time) float64 {
	period := c.To.Sub(c.From)
	if period <= 0 {
		return 0
	}
	return min(1, max(0, float64(t.Sub(c.From))/float64(period)))
}

func (c *Chart) column(t time.Time) int {
	return min(c.Columns-1, int(c.at(t)*float64(c.Columns)))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
