// The chart is figure 2 of the 1997 paper, drawn from what really happened: a lane for each atom with its runs,
// denied requests, and the windows of IfElapsed and ExpireAfter. The same chart goes to a terminal or into an SVG file,
// which is written with fmt and html.EscapeString, as a library would only save writing the brackets.

package report

import (
	"time"

	"adlock/lib/atom"
	"adlock/lib/insight/history"
	"adlock/lib/policy"
	"adlock/lib/runlog"
)

// Chart is a period in columns of equal length. Even a long runlog seldom makes a large chart: denials in one column
// are only counted. So are successive runs in one column with the same outcome, unless they were ended by force.
type Chart struct {
	from, to time.Time
	Columns  int
	Lanes    []*Lane
	Damaged  int // lines of the runlog that could not be read
}

type Lane struct {
	*history.Atom
	Bars  []*Bar
	Ticks []*Tick // in the order of their columns

	elsewhere bool // an atom of another host has the same words
}

// Text is the name of the lane's atom, with its host if other lanes have the same name.
func (l *Lane) Text() string {
	if l.elsewhere {
		return l.Words() + " on " + l.Host
	}
	return l.Words()
}

// Bar is a run, or several with the same outcome that began and ended within one column.
type Bar struct {
	history.Run
	Count int           // how many runs the bar shows; Held is the sum of their times
	Least time.Duration // the shortest time that one of them held the atom
	Most  time.Duration // the longest such time
	End   time.Time     // when the last of them ended; the end of the period if it was running then
	Until time.Time     // when the next run began, but not before End; the chart's end if none did
}

func (b *Bar) due() time.Time {
	from := b.End
	if b.FromStart {
		from = b.Start
	}
	in := policy.DueIn(policy.Limits{IfElapsed: b.IfElapsed.Value}, policy.Last{Completed: true, FromStart: b.FromStart})
	return after(from, in, b.Until)
}

func (b *Bar) overran() bool { return b.ExpireAfter.Value > 0 && b.expiry().Before(b.End) }

func (b *Bar) expiry() time.Time {
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
	history.Denials
	Column      int
	First, Last time.Time
}

type ChartOptions struct {
	Since, Until time.Time                          // the period; if no event is before Since, the chart begins shortly before the first one
	Margin       bool                               // draw a little beyond Until, so that the last run is not at the edge
	Columns      int                                // the resolution
	Match        func(atom.Atom) bool               // which atoms are included; nil: all
	State        func(token string) history.Outcome // the state of a run without an end, by its token; nil: Running
}

// BuildChart reads events, from history.Read. If it returns an error too, the chart is of what could be read.
func BuildChart(events func(yield func(runlog.Event, error) bool), o ChartOptions) (*Chart, error) {
	b := chartBuilder{options: o, lanes: map[*history.Atom]*Lane{}}
	b.chart = &Chart{from: o.Since, to: o.Until, Columns: max(1, o.Columns)}
	b.tracker = history.Tracker{Run: b.run, Match: o.Match}
	var failed error
	b.chart.Damaged, failed = history.Each(events, b.event)
	b.tracker.Finish(o.Until, o.State)
	b.finish()
	return b.chart, failed
}

type chartBuilder struct {
	options ChartOptions
	chart   *Chart
	tracker history.Tracker
	lanes   map[*history.Atom]*Lane
	begun   bool
}

func (b *chartBuilder) event(e *runlog.Event) {
	inside := !e.Time.Before(b.options.Since) && !e.Time.After(b.options.Until)
	if inside && !b.begun {
		b.begin(e.Time)
	}
	source := b.tracker.Add(e)
	if !inside || source == nil || !history.IsDenial(e) {
		return
	}
	b.lane(source).tick(b.chart.column(e.Time), e)
}

// begin sets where the chart begins and ends, at the first event in the period. Unless there were earlier events, the
// chart begins shortly before this one, but not before Since. With Margin, it ends shortly after Until.
func (b *chartBuilder) begin(first time.Time) {
	b.begun = true
	margin := b.options.Until.Sub(first) / 50
	if start := first.Add(-margin); len(b.tracker.Atoms()) == 0 && start.After(b.chart.from) {
		b.chart.from = start
	}
	if b.options.Margin {
		b.chart.to = b.options.Until.Add(margin)
	}
}

func (b *chartBuilder) lane(source *history.Atom) *Lane {
	if b.lanes[source] == nil {
		b.lanes[source] = &Lane{Atom: source}
	}
	return b.lanes[source]
}

func (l *Lane) tick(column int, e *runlog.Event) {
	var t *Tick
	if n := len(l.Ticks); n > 0 && l.Ticks[n-1].Column >= column {
		t = l.Ticks[n-1] // an event may be a little older than the one before it
	} else {
		t = &Tick{Column: column, First: e.Time}
		l.Ticks = append(l.Ticks, t)
	}
	t.Last = e.Time
	t.Denials.Add(e)
}

func (b *chartBuilder) run(source *history.Atom, r *history.Run) {
	until, end := b.options.Until, r.End
	if r.Outcome == history.Running || end.After(until) { // the run was still running at the end of the period
		r = &history.Run{
			PID: r.PID, Node: r.Node, Token: r.Token, Start: r.Start, Held: until.Sub(r.Start), Shared: r.Shared, IfElapsed: r.IfElapsed, FromStart: r.FromStart, ExpireAfter: r.ExpireAfter,
		}
		end = until
	}
	if end.Before(b.chart.from) || r.Start.After(until) {
		return
	}
	lane := b.lane(source)
	bar := &Bar{Run: *r, Count: 1, Least: r.Held, Most: r.Held, End: end, Until: b.chart.to}
	if n := len(lane.Bars); n > 0 {
		last := lane.Bars[n-1]
		if b.chart.merges(last, bar) {
			last.take(bar)
			return
		}
		if last.Until = r.Start; last.Until.Before(last.End) {
			last.Until = last.End
		}
	}
	lane.Bars = append(lane.Bars, bar)
}

func (b *Bar) take(next *Bar) {
	b.Count, b.Held, b.End = b.Count+1, b.Held+next.Held, next.End
	b.Least, b.Most = min(b.Least, next.Least), max(b.Most, next.Most)
}

func (c *Chart) merges(last, next *Bar) bool {
	column := c.column(next.Start) // a reader that ends later may have begun earlier
	return last.Outcome == next.Outcome && !last.byForce() && c.column(last.Start) == column && column == c.column(next.End)
}

func (b *Bar) byForce() bool { return b.Outcome == history.Ended || b.Outcome == history.Stopped }

func (b *chartBuilder) finish() {
	called := map[string]*Lane{}
	for _, source := range b.tracker.Atoms() {
		lane := b.lanes[source]
		if lane == nil || len(lane.Bars)+len(lane.Ticks) == 0 {
			continue
		}
		b.chart.Lanes = append(b.chart.Lanes, lane)
		if other := called[lane.Words()]; other != nil {
			lane.elsewhere, other.elsewhere = true, true
		}
		called[lane.Words()] = lane
	}
}

// at is the position of t in the chart, from 0 at its beginning (or before) to 1 at its end (or after).
func (c *Chart) at(t time.Time) float64 {
	period := c.to.Sub(c.from)
	if period <= 0 {
		return 0
	}
	return min(1, max(0, float64(t.Sub(c.from))/float64(period)))
}

func (c *Chart) column(t time.Time) int {
	return min(c.Columns-1, int(c.at(t)*float64(c.Columns)))
}
