package report

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"math/bits"
	"time"

	"adlock/lib/insight/history"
	"adlock/lib/insight/terminal"
	"adlock/lib/limit"
)

// layout has the positions in a picture, in the picture's own units, which the viewer scales.
type layout struct {
	width      int
	left, plot int  // where the plot begins, and how wide it is
	lane       int  // how high a lane is
	top        int  // where the plot begins in a lane
	marks      int  // how many marks the scale has, at most
	above      bool // the names stand above their lanes, not beside them
}

var (
	wide   = layout{width: 1200, left: 236, plot: 1200 - 236 - 24, lane: 60, marks: 10}
	narrow = layout{width: 400, left: 12, plot: 400 - 12 - 12, lane: 80, top: 22, marks: 4, above: true}
)

const (
	headHeight = 84

	ticksTop  = 6  // where the denied requests begin in a lane's plot
	barTop    = 25 // where the runs begin
	barHeight = 18
	stripTop  = barTop + barHeight + 3
)

// SVGColumns is the number of columns: each is as wide as the thinnest tick that a mouse can point at.
const SVGColumns = (1200 - 236 - 24) / 3

// Marks differ in shape too, so that no reader needs to distinguish colours.
var (
	small  = Fill(Dim) + ` font-size="12"`
	wrong  = Fill(Bad)
	over   = `fill="none" stroke="#fff" stroke-opacity=".55" stroke-dasharray="2.5 3.5"`
	disc   = Outline(Ground, Bad) + ` stroke-width="1.5"`
	odd    = Outline(Ground, Odd) + ` stroke-width="1.5"`
	cross  = Stroke(Bad) + ` stroke-width="2" stroke-linecap="round"`
	query  = Fill(Odd) + ` font-size="11" font-weight="700" text-anchor="middle"`
	window = Fill(Now) + ` opacity=".16"`
	grace  = Fill(Dim) + ` opacity=".35"`
	expiry = Stroke(Dim) + ` stroke-width="1.5"`
	busy   = Fill(Odd)
	soon   = Stroke(Dim) + ` stroke-width="1.5"`
	full   = Fill(Full)
)

var fills = [history.Outcomes]string{
	history.Running: Fill(Now), history.Succeeded: Fill(Good), history.Failed: wrong, history.Ended: wrong,
	history.Orphaned: Fill(Odd), history.Cleared: Fill(Odd), history.Stopped: Fill(Odd), history.Lost: Fill(Odd), history.NotRun: wrong,
}

type svg struct {
	bytes.Buffer
	layout
	chart *Chart
	id    string // prefix of each id, if a page has several pictures
}

// SVG returns a self-contained picture. Pointing at a bar, a mark, a window or a tick shows what it is.
func (c *Chart) SVG() []byte {
	w := &svg{layout: wide, chart: c}
	w.draw(fmt.Sprintf(` width="%d" height="%d"`, w.width, w.height()), "<style>"+StyleSheet()+".b:hover,.t:hover{filter:brightness(1.25)}\n</style>")
	return w.Bytes()
}

// Wide returns the picture for a page that has StyleSheet.
func (c *Chart) Wide() []byte { return c.inline(wide, "wide-") }

// Narrow returns the picture for a narrow page that has StyleSheet: it is readable at 400 pixels.
func (c *Chart) Narrow() []byte { return c.inline(narrow, "narrow-") }

func (c *Chart) inline(l layout, id string) []byte {
	w := &svg{layout: l, chart: c, id: id}
	w.draw("", "")
	return w.Bytes()
}

func (w *svg) bottom() int { return headHeight + w.lane*max(1, len(w.chart.Lanes)) }

func (w *svg) height() int {
	_, lines := w.places()
	return w.bottom() + 44 + legendLine*lines
}

func (w *svg) draw(size, style string) {
	w.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d"%s %s font-size="13" %s role="graphics-document" aria-labelledby="%stitle %sdesc">`,
		w.width, w.height(), size, Font, Fill(Ink), w.id, w.id)
	w.add(`<title id="%stitle">Timeline of locks</title><desc id="%sdesc">%s</desc>`, w.id, w.id, escape(w.chart.describe()))
	w.WriteString(style)
	w.add(`<rect %s width="%d" height="%d" rx="8"/>`, Fill(Ground), w.width, w.height())
	w.add(`<text font-size="17" font-weight="600" x="%d" y="32">Locks over time</text>`, w.margin())
	if w.id == "" { // a page shows its period itself
		w.add(`<text %s x="20" y="52">%s</text>`, small, escape(w.chart.period()))
	}
	w.lanes()
	w.scale()
	for i, lane := range w.chart.Lanes {
		w.row(lane, headHeight+i*w.lane)
	}
	if len(w.chart.Lanes) == 0 {
		w.add(`<text %s x="%d" y="%d">nothing is recorded of this period</text>`, small, w.left, headHeight+36)
	}
	w.legend()
	w.WriteString("</svg>\n")
}

func (w *svg) margin() int { return min(20, w.left) }

func (w *svg) add(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

func (c *Chart) period() string {
	return c.from.Local().Format(time.DateTime) + " to " + c.to.Local().Format(time.DateTime+" MST") + " (" + terminal.Duration(c.to.Sub(c.from)) + ")"
}

func (c *Chart) describe() string {
	runs, ended, denied := 0, 0, 0
	for _, lane := range c.Lanes {
		for _, b := range lane.Bars {
			runs += b.Count
			if b.byForce() {
				ended++
			}
		}
		for _, t := range lane.Ticks {
			denied += t.Count()
		}
	}
	return fmt.Sprintf("%s. %d atoms, %d runs of which %d were ended by force, %d denied requests.", c.period(), len(c.Lanes), runs, ended, denied)
}

func (w *svg) x(t time.Time) float64 {
	return tenth(float64(w.left) + w.chart.at(t)*float64(w.plot))
}

func tenth(x float64) float64 { return math.Round(x*10) / 10 }

func (w *svg) lanes() {
	for i := range w.chart.Lanes {
		if i%2 == 0 {
			w.add(`<rect %s x="8" y="%d" width="%d" height="%d" rx="4"/>`, Fill(Strip), headHeight+i*w.lane, w.width-16, w.lane)
		}
	}
}

func (w *svg) scale() {
	for _, m := range w.chart.scale(w.marks) {
		x := w.x(m.at)
		w.add(`<line %s x1="%v" x2="%v" y1="%d" y2="%d"/><text %s x="%v" y="%d" text-anchor="middle">%s</text>`,
			Stroke(Line), x, x, headHeight-8, w.bottom(), small, min(max(x, 26), float64(w.width-26)), headHeight-14, m.label)
	}
}

func (w *svg) row(lane *Lane, top int) {
	w.add(`<g role="graphics-object" aria-label="%s" transform="translate(0 %d)">`, escape(lane.Text()), top)
	w.name(lane)
	w.add(`<g transform="translate(0 %d)">`, w.top)
	for _, b := range lane.Bars {
		w.windows(b)
	}
	for _, b := range lane.Bars {
		w.bar(b)
	}
	for _, b := range lane.Bars {
		w.mark(b)
	}
	for _, t := range lane.Ticks {
		w.tick(t)
	}
	w.WriteString("</g></g>\n")
}

func (w *svg) name(lane *Lane) {
	whole := escape(lane.Atom.Atom.String())
	if w.above {
		w.add(`<text font-weight="600" font-size="12" x="%d" y="20">%s<title>%s</title></text>`, w.left, escape(terminal.Cut(terminal.Clean(lane.Text()), 48, "…")), whole)
		return
	}
	name := terminal.Clean(lane.Program + " " + lane.Operator)
	w.add(`<text font-weight="600" x="20" y="25">%s<title>%s</title></text>`, escape(terminal.Cut(name, 28, "…")), whole)
	w.add(`<text %s x="20" y="43">%s<title>%s</title></text>`, small, escape(terminal.Cut(terminal.Clean(lane.Operand), 32, "…")), escape(lane.Operand))
}

// windows draws the windows of IfElapsed and ExpireAfter; none for a bar of several runs.
func (w *svg) windows(b *Bar) {
	if b.Count > 1 {
		return
	}
	if due := b.due(); due.After(b.End) && b.Outcome != history.Running {
		w.rect(window, b.End, due, barTop-4, barHeight+8, "IfElapsed "+limit.Format(b.IfElapsed.Value)+": not due before "+clock(due))
	}
	end := b.expiry()
	if !end.After(b.Start) {
		return
	}
	w.rect(grace, b.Start, end, stripTop, 3, "ExpireAfter "+limit.Format(b.ExpireAfter.Value))
	if end.Before(b.Until) {
		w.add(`<line %s x1="%v" x2="%v" y1="%d" y2="%d"/>`, expiry, w.x(end), w.x(end), stripTop-3, stripTop+5)
	}
}

func (w *svg) rect(paint string, from, to time.Time, top, height int, title string) {
	x := w.x(from)
	w.add(`<rect %s x="%v" y="%d" width="%v" height="%d"><title>%s</title></rect>`, paint, x, top, max(1, tenth(w.x(to)-x)), height, escape(title))
}

func (w *svg) bar(b *Bar) {
	x := w.x(b.Start)
	end := max(x+2.5, w.x(b.End))
	w.add(`<g class="b"><title>%s</title><rect %s x="%v" y="%d" width="%v" height="%d" rx="2"/>`,
		escape(b.title()), fills[b.Outcome], x, barTop, tenth(end-x), barHeight)
	if b.overran() {
		// This is a broken line as thick as the bar, as not every viewer can draw a pattern.
		w.add(`<path %s stroke-width="%d" d="M%v %dH%v"/>`, over, barHeight, w.x(b.expiry()), barTop+barHeight/2, end)
	}
	w.WriteString("</g>\n")
}

// mark marks a forced, failed or unknown end. It draws over all bars, as the next run often begins at the same place.
func (w *svg) mark(b *Bar) {
	const middle = barTop + barHeight/2
	x, drawn := max(w.x(b.Start)+2.5, w.x(b.End)), ""
	switch b.Outcome {
	case history.Ended, history.Stopped:
		drawn = shape(`<path %s stroke-dasharray="2 2" d="M%v %dV%d"/><circle %s cx="%v" cy="%d" r="7"/><path %s d="M%v %dl6 6m0 -6l-6 6"/>`,
			Stroke(Bad), x, ticksTop, stripTop+6, disc, x, middle, cross, tenth(x-3), middle-3)
	case history.Failed, history.NotRun:
		drawn = shape(`<rect %s x="%v" y="%d" width="3" height="%d" rx="1"/>`, wrong, tenth(x-1.5), barTop-4, barHeight+8)
	case history.Orphaned, history.Cleared, history.Lost:
		drawn = shape(`<circle %s cx="%v" cy="%d" r="7"/><text %s x="%v" y="%d">?</text>`, odd, x, middle, query, x, middle+4)
	default:
		return
	}
	w.add(`<g class="b"><title>%s</title>%s</g>`, escape(b.title()), drawn)
}

func (b *Bar) title() string {
	if b.Count > 1 {
		return fmt.Sprintf("%d runs, %s to %s: %s", b.Count, clock(b.Start), clock(b.End), b.Outcome)
	}
	text := fmt.Sprintf("%s, held %s by %s: ", clock(b.Start), terminal.Duration(b.Held), b.Owner())
	ender, self := b.Ender()
	switch {
	case b.Outcome == history.Running:
		return text + "running"
	case b.Outcome == history.Ended && self:
		text += "ended by its own supervisor at ExpireAfter"
	case b.Outcome == history.Ended:
		text += "ended by force by " + ender
	case b.Outcome == history.Orphaned && b.By != 0:
		text += "found dead by " + ender
	default:
		text += b.Outcome.String()
	}
	if b.Signal != "" {
		return text + ", signal " + b.Signal
	}
	if b.Status.Set && b.Status.Value >= 0 {
		text += fmt.Sprintf(", status %d", b.Status.Value)
	}
	return text
}

func (w *svg) tick(t *Tick) {
	x := tenth(float64(w.left) + (float64(t.Column)+0.5)*float64(w.plot)/float64(w.chart.Columns))
	more := min(5, bits.Len(uint(t.Count()))-1)
	w.add(`<g class="t"><title>%s</title>%s</g>`, escape(t.title()), t.shape(x, more))
}

func (t *Tick) shape(x float64, more int) string {
	const bottom = barTop - 6
	switch {
	case t.Stuck > 0:
		return fmt.Sprintf(`<rect %s x="%v" y="%v" width="5" height="%v"/>`, wrong, tenth(x-2.5), bottom-8-more, 8+more)
	case t.Full > 0 && t.Full >= t.Busy:
		return fmt.Sprintf(`<path %s d="M%v %vl4 4l-4 4l-4 -4z"/>`, full, x, bottom-8)
	case t.Busy > 0:
		return fmt.Sprintf(`<rect %s x="%v" y="%v" width="2" height="%v"/>`, busy, tenth(x-1), bottom-7-more, 7+more)
	}
	return fmt.Sprintf(`<circle %s cx="%v" cy="%d" r="2.5"/>`, soon, x, bottom-3)
}

func (t *Tick) title() string {
	text := clock(t.First)
	if t.Count() > 1 {
		text += " to " + clock(t.Last)
	}
	return text + ": denied " + t.Text()
}

func clock(t time.Time) string { return t.Local().Format("Jan 2 15:04:05") }

type entry struct {
	shape, text string
	width       int
}

var legend = [...]entry{
	{shape(`<rect %s y="-9" width="16" height="11" rx="2"/>`, Fill(Good)), "succeeded", 92},
	{shape(`<rect %s y="-9" width="16" height="11" rx="2"/><rect %s x="14.5" y="-12" width="3" height="17" rx="1"/>`, wrong, wrong), "failed", 66},
	{shape(`<rect %s y="-9" width="10" height="11" rx="2"/><circle %s cx="11" cy="-3.5" r="6.5"/><path %s d="M8.2 -6.3l5.6 5.6m0 -5.6l-5.6 5.6"/>`, wrong, disc, cross), "ended by force", 118},
	{shape(`<rect %s y="-9" width="10" height="11" rx="2"/><circle %s cx="11" cy="-3.5" r="6.5"/><text %s x="11">?</text>`, Fill(Odd), odd, query), "end unknown", 106},
	{shape(`<rect %s y="-9" width="16" height="11" rx="2"/>`, Fill(Now)), "running", 74},
	{shape(`<rect %s y="-9" width="16" height="11" rx="2"/><path %s stroke-width="11" d="M3 -3.5H16"/>`, Fill(Now), over), "overdue", 76},
	{shape(`<rect %s y="-10" width="16" height="13"/>`, window), "IfElapsed", 84},
	{shape(`<rect %s y="-5" width="16" height="3"/><line %s x1="16" x2="16" y1="-8" y2="1"/>`, grace, expiry), "ExpireAfter", 104},
	{shape(`<rect %s x="7" y="-9" width="2" height="10"/>`, busy), "denied: busy", 104},
	{shape(`<circle %s cx="8" cy="-4" r="2.5"/>`, soon), "too soon, paused", 130},
	{shape(`<path %s d="M8 -9l4 4l-4 4l-4 -4z"/>`, full), "full", 46},
	{shape(`<rect %s x="6" y="-9" width="5" height="10"/>`, wrong), "stuck", 52},
}

func shape(format string, paints ...any) string { return fmt.Sprintf(format, paints...) }

const legendLine = 20

func (w *svg) legend() {
	at, _ := w.places()
	for i, e := range legend {
		w.add(`<g transform="translate(%d %d)">%s<text %s x="23">%s</text></g>`, at[i].x, w.bottom()+36+at[i].line*legendLine, e.shape, small, e.text)
	}
}

func (w *svg) places() (at [len(legend)]struct{ x, line int }, lines int) {
	x := w.margin()
	for i, e := range legend {
		if x+e.width > w.width {
			x = w.margin()
			lines++
		}
		at[i].x, at[i].line = x, lines
		x += e.width + 11
	}
	return at, lines + 1
}

func escape(text string) string { return html.EscapeString(terminal.Clean(text)) }
