package report

import (
	"fmt"
	"math"
	"strings"
	"time"

	"adlock/lib/insight/history"
	"adlock/lib/insight/terminal"
	"adlock/lib/limit"
)

// These are the measures of a picture of runtimes, which is readable at 400 pixels.
const (
	graphLeft   = 52 // for "100ms" in a wide font
	graphTop    = 12
	graphWidth  = 400 - graphLeft - 12
	graphHeight = 150
)

// runtimes draws how long a lane's runs took, and the limits in force, on a logarithmic scale. It returns nil if no run
// has a runtime. The page that shows the picture needs StyleSheet.
func (c *Chart) runtimes(lane *Lane) []byte {
	g := &graph{svg: svg{layout: layout{left: graphLeft, plot: graphWidth}, chart: c}, lane: lane}
	if !g.fit() {
		return nil
	}
	g.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 %d" %s font-size="12" %s role="img" aria-label="%s">`,
		graphTop+graphHeight+48, Font, Fill(Ink), escape("Runtimes and limits of "+lane.Text()))
	g.grid()
	g.line(Stroke(Odd)+` stroke-width="1.5"`, func(b *Bar) time.Duration { return b.ExpireAfter.Value })
	g.line(Stroke(Dim)+` stroke-dasharray="4 3"`, func(b *Bar) time.Duration { return b.IfElapsed.Value })
	g.runs()
	g.explain()
	g.WriteString("</svg>\n")
	return g.Bytes()
}

type graph struct {
	svg
	lane        *Lane
	least, most float64 // of the times shown: the logarithm of their seconds
}

// fit sets the range of times so that all runs and limits are in it. It returns false if no run has a runtime (timed).
func (g *graph) fit() (found bool) {
	least, most := limit.Never, time.Duration(0)
	for _, b := range g.lane.Bars {
		if b.timed() {
			least, most, found = min(least, b.Least), max(most, b.Most), true
		}
		for _, d := range [...]time.Duration{b.ExpireAfter.Value, b.IfElapsed.Value} {
			if hasLogarithm(d) {
				least, most = min(least, d), max(most, d)
			}
		}
	}
	g.least, g.most = logarithm(least)-0.3, logarithm(most)+0.3
	return found
}

// timed reports whether Held says how long the job ran: the run completed, is Running, or is Ended (but not Stopped).
func (b *Bar) timed() bool {
	return b.Completed() || b.Outcome == history.Ended || b.Outcome == history.Running
}

func hasLogarithm(d time.Duration) bool { return d > 0 && d != limit.Never }

func logarithm(d time.Duration) float64 {
	return math.Log10(max(d, time.Millisecond).Seconds())
}

func (g *graph) y(d time.Duration) float64 {
	return tenth(graphTop + graphHeight*(g.most-logarithm(d))/(g.most-g.least))
}

var units = [...][]time.Duration{
	{
		time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second,
		time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, day, 7 * day, 28 * day, 364 * day,
	},
	append([]time.Duration{
		time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
		100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	}, steps[:]...),
}

// times returns the times to be marked at the side of the picture, three or more if possible.
func (g *graph) times() (marks []time.Duration) {
	for _, unit := range units {
		marks = marks[:0]
		for _, d := range unit {
			at, n := logarithm(d), len(marks)
			if at >= g.least && at <= g.most && (n == 0 || g.y(marks[n-1])-g.y(d) >= 16) {
				marks = append(marks, d)
			}
		}
		if len(marks) >= 3 {
			break
		}
	}
	return marks
}

func (g *graph) grid() {
	for _, d := range g.times() {
		g.add(`<path %s d="M%d %vh%d"/><text %s x="%d" y="%v" text-anchor="end">%s</text>`,
			Stroke(Line), graphLeft, g.y(d), graphWidth, small, graphLeft-6, g.y(d)+4, terminal.Duration(d))
	}
	for _, m := range g.chart.scale(4) {
		x := g.x(m.at)
		g.add(`<path %s d="M%v %dv%d"/><text %s x="%v" y="%d" text-anchor="middle">%s</text>`,
			Stroke(Line), x, graphTop, graphHeight, small, min(x, 400-24), graphTop+graphHeight+16, m.label)
	}
}

// line draws a limit from run to run. It leaves out never and 0.
func (g *graph) line(paint string, of func(*Bar) time.Duration) {
	var path strings.Builder
	last := time.Duration(0)
	for _, b := range g.lane.Bars {
		d := of(b)
		switch {
		case !hasLogarithm(d):
		case d != last:
			fmt.Fprintf(&path, "M%v %vH%v", g.x(b.Start), g.y(d), max(g.x(b.Start)+2, g.x(b.Until)))
		default:
			fmt.Fprintf(&path, "H%v", g.x(b.Until))
		}
		last = d
	}
	if path.Len() > 0 {
		g.add(`<path %s d="%s"/>`, paint, path.String())
	}
}

func (g *graph) runs() {
	var paths [history.Outcomes]strings.Builder
	for _, b := range g.lane.Bars {
		switch {
		case !b.timed():
		case b.Outcome == history.Ended:
			fmt.Fprintf(&paths[b.Outcome], "M%v %vl6 6m0 -6l-6 6", tenth(g.x(b.Start)-3), tenth(g.y(b.Most)-3))
		default:
			fmt.Fprintf(&paths[b.Outcome], "M%v %vV%v", g.x(b.Start), g.y(b.Least), g.y(b.Most))
		}
	}
	for _, outcome := range [...]history.Outcome{history.Succeeded, history.Running, history.Failed, history.Ended} {
		if path := &paths[outcome]; path.Len() > 0 {
			g.add(`<path %s d="%s"/>`, strokes[outcome], path.String())
		}
	}
}

const dot = ` stroke-width="5" stroke-linecap="round"`

var strokes = [history.Outcomes]string{
	history.Running: Stroke(Now) + dot, history.Succeeded: Stroke(Good) + dot,
	history.Failed: Stroke(Bad) + dot, history.Ended: cross,
}

func (g *graph) explain() {
	x := 8
	for _, e := range [...]entry{
		{shape(`<path %s d="M5 -4v0"/>`, strokes[history.Succeeded]), "run", 34},
		{shape(`<path %s d="M5 -4v0"/>`, strokes[history.Failed]), "failed", 48},
		{shape(`<path %s d="M2 -7l6 6m0 -6l-6 6"/>`, cross), "ended by force", 98},
		{shape(`<path %s stroke-width="1.5" d="M0 -4h10"/>`, Stroke(Odd)), "ExpireAfter", 80},
		{shape(`<path %s stroke-dasharray="4 3" d="M0 -4h10"/>`, Stroke(Dim)), "IfElapsed", 60},
	} {
		g.add(`<g transform="translate(%d %d)">%s<text %s x="14">%s</text></g>`, x, graphTop+graphHeight+40, e.shape, small, e.text)
		x += e.width + 16
	}
}
