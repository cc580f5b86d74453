package timeline

import (
	"bytes"
	"fmt"
	"math"
	"math/bits"
	"strings"
	"time"

	"adlock/lib/history"
	"adlock/lib/limit"
	"adlock/lib/terminal"
)

// The measures of the picture, in its own units; it scales with the window.
const (
	pictureWidth = 1200
	plotLeft     = 236
	plotWidth    = pictureWidth - plotLeft - 24
	headHeight   = 84
	laneHeight   = 60
	footHeight   = 64

	ticksTop  = 6  // of the requests, in a lane
	barTop    = 25 // of the runs
	barHeight = 18
	stripTop  = barTop + barHeight + 3
)

// SVGColumns is the resolution that suits the picture: a column is as wide as
// the thinnest tick that can still be pointed at.
const SVGColumns = plotWidth / 3

// style has the colours for light and for dark surroundings. Kinds differ in
// shape too, so nothing depends on telling colours apart.
const style = `
svg{--bg:#fff;--fg:#1c2128;--dim:#636c76;--line:#e2e5e9;--lane:#f6f7f9;--ok:#2da160;--bad:#d23c3c;--now:#2f7ed8;--odd:#c08a12;--win:#2f7ed8;--full:#9a5bd0;color-scheme:light dark}
@media(prefers-color-scheme:dark){svg{--bg:#15191f;--fg:#e3e7ec;--dim:#8f99a5;--line:#2c333c;--lane:#1b2027;--ok:#43b878;--bad:#f0605f;--now:#5aa2f2;--odd:#dfa937;--win:#6aaef5;--full:#bb86ea}}
text{font:13px system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif;fill:var(--fg)}
.h{font-size:17px;font-weight:600}.d{fill:var(--dim);font-size:12px}.n{font-weight:600}
.bg{fill:var(--bg)}.lane{fill:var(--lane)}.grid{stroke:var(--line)}
.success{fill:var(--ok)}.failure{fill:var(--bad)}.ended{fill:var(--bad)}.running{fill:var(--now)}.orphaned,.cleared,.lost{fill:var(--odd)}
.over{fill:url(#hatch)}.if{fill:var(--win);opacity:.16}.ex{fill:var(--dim);opacity:.35}.dl{stroke:var(--dim);stroke-width:1.5}
.kill{stroke:var(--bad);stroke-width:2;fill:none;stroke-linecap:round}.cut{stroke:var(--bad);stroke-dasharray:2 2}.disc{fill:var(--bg);stroke:var(--bad);stroke-width:1.5}.odd{stroke:var(--odd)}.q{fill:var(--odd);font-size:11px;font-weight:700}
.busy{fill:var(--odd)}.soon{fill:none;stroke:var(--dim);stroke-width:1.5}.full{fill:var(--full)}.stuck{fill:var(--bad)}
.b:hover,.t:hover{filter:brightness(1.25)}
`

// svg is a picture that is being written.
type svg struct {
	bytes.Buffer
	chart *Chart
}

// SVG draws the chart as a picture that stands alone. Its size in pixels is the
// viewer's choice; pointing at a thing tells what it is.
func (c *Chart) SVG() []byte {
	w := &svg{chart: c}
	height := headHeight + laneHeight*max(1, len(c.Lanes)) + footHeight
	w.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="graphics-document" aria-labelledby="title desc">`,
		pictureWidth, height, pictureWidth, height)
	w.add(`<title id="title">Timeline of locks</title><desc id="desc">%s</desc>`, escape(c.describe()))
	w.add(`<style>%s</style>`, style)
	w.WriteString(`<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="2.5" height="6" fill="#fff" opacity=".55"/></pattern></defs>` + "\n")
	w.add(`<rect class="bg" width="%d" height="%d" rx="8"/>`, pictureWidth, height)
	w.add(`<text class="h" x="20" y="32">Locks over time</text><text class="d" x="20" y="52">%s</text>`, escape(c.period()))
	w.lanes()
	w.scale(height - footHeight)
	for i, lane := range c.Lanes {
		w.lane(lane, headHeight+i*laneHeight)
	}
	if len(c.Lanes) == 0 {
		w.add(`<text class="d" x="%d" y="%d">nothing is recorded of this period</text>`, plotLeft, headHeight+36)
	}
	w.legend(height - footHeight + 36)
	w.WriteString("</svg>\n")
	return w.Bytes()
}

func (w *svg) add(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

func (c *Chart) period() string {
	const layout = "2006-01-02 15:04:05"
	return c.From.Local().Format(layout) + " to " + c.To.Local().Format(layout+" MST") + " (" + terminal.Duration(c.To.Sub(c.From)) + ")"
}

func (c *Chart) describe() string {
	runs, ended, denied := 0, 0, 0
	for _, lane := range c.Lanes {
		for _, b := range lane.Bars {
			runs += b.Count
			if b.Outcome == history.Ended {
				ended++
			}
		}
		for _, t := range lane.Ticks {
			denied += t.Count()
		}
	}
	return fmt.Sprintf("%s. %d atoms, %d runs of which %d were ended by force, %d denied requests.", c.period(), len(c.Lanes), runs, ended, denied)
}

func (w *svg) x(t time.Time) float64 { return round(plotLeft + w.chart.at(t)*plotWidth) }

func round(x float64) float64 { return math.Round(x*10) / 10 }

// lanes draws every second lane's background, below the grid.
func (w *svg) lanes() {
	for i := range w.chart.Lanes {
		if i%2 == 0 {
			w.add(`<rect class="lane" x="8" y="%d" width="%d" height="%d" rx="4"/>`, headHeight+i*laneHeight, pictureWidth-16, laneHeight)
		}
	}
}

func (w *svg) scale(bottom int) {
	for _, m := range w.chart.scale(10) {
		x := w.x(m.at)
		w.add(`<line class="grid" x1="%v" x2="%v" y1="%d" y2="%d"/><text class="d" x="%v" y="%d" text-anchor="middle">%s</text>`,
			x, x, headHeight-8, bottom, x, headHeight-14, m.label)
	}
}

func (w *svg) lane(lane *Lane, top int) {
	name := terminal.Clean(lane.Program + " " + lane.Operator)
	w.add(`<g role="graphics-object" aria-label="%s" transform="translate(0 %d)">`, escape(lane.Text()), top)
	w.add(`<text class="n" x="20" y="25">%s<title>%s</title></text>`, escape(terminal.Cut(name, 28, "…")), escape(lane.Atom.Atom.String()))
	w.add(`<text class="d" x="20" y="43">%s<title>%s</title></text>`, escape(terminal.Cut(terminal.Clean(lane.Operand), 32, "…")), escape(lane.Operand))
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
	w.WriteString("</g>\n")
}

// windows draws when the atom is not due yet, and how long the run may take;
// not for runs that are too many for that to be seen.
func (w *svg) windows(b *Bar) {
	if b.Count > 1 {
		return
	}
	if due := b.Due(); due.After(b.End) && b.Outcome != history.Running {
		w.rect("if", b.End, due, barTop-4, barHeight+8, "IfElapsed "+limit.Format(b.IfElapsed.Value)+": not due before "+clock(due))
	}
	expiry := b.Expiry()
	if !expiry.After(b.Start) {
		return
	}
	w.rect("ex", b.Start, expiry, stripTop, 3, "ExpireAfter "+limit.Format(b.ExpireAfter.Value))
	if expiry.Before(b.Until) {
		w.add(`<line class="dl" x1="%v" x2="%v" y1="%d" y2="%d"/>`, w.x(expiry), w.x(expiry), stripTop-3, stripTop+5)
	}
}

func (w *svg) rect(class string, from, to time.Time, top, height int, title string) {
	x := w.x(from)
	w.add(`<rect class="%s" x="%v" y="%d" width="%v" height="%d"><title>%s</title></rect>`, class, x, top, max(1, round(w.x(to)-x)), height, escape(title))
}

func (w *svg) bar(b *Bar) {
	x := w.x(b.Start)
	end := max(x+2.5, w.x(b.End))
	w.add(`<g class="b"><title>%s</title><rect class="%s" x="%v" y="%d" width="%v" height="%d" rx="2"/>`,
		escape(b.title()), b.Outcome, x, barTop, round(end-x), barHeight)
	if expiry := b.Expiry(); b.ExpireAfter.Set && expiry.Before(b.End) {
		w.add(`<rect class="over" x="%v" y="%d" width="%v" height="%d"/>`, w.x(expiry), barTop, round(end-w.x(expiry)), barHeight)
	}
	w.WriteString("</g>\n")
}

// mark says how a bar ended where something was wrong. Marks lie over all bars:
// the next run often begins where one was ended.
func (w *svg) mark(b *Bar) {
	const middle = barTop + barHeight/2
	switch x := max(w.x(b.Start)+2.5, w.x(b.End)); b.Outcome {
	case history.Ended:
		w.add(`<g class="b"><title>%s</title><path class="cut" d="M%v %dV%d"/><circle class="disc" cx="%v" cy="%d" r="7"/><path class="kill" d="M%v %dl6 6m0 -6l-6 6"/></g>`,
			escape(b.title()), x, ticksTop, stripTop+6, x, middle, round(x-3), middle-3)
	case history.Failed:
		w.add(`<rect class="failure" x="%v" y="%d" width="3" height="%d" rx="1"/>`, round(x-1.5), barTop-4, barHeight+8)
	case history.Orphaned, history.Cleared, history.Lost:
		w.add(`<circle class="disc odd" cx="%v" cy="%d" r="7"/><text class="q" x="%v" y="%d" text-anchor="middle">?</text>`, x, middle, x, middle+4)
	}
}

// title tells a bar in words.
func (b *Bar) title() string {
	if b.Count > 1 {
		return fmt.Sprintf("%d runs, %s to %s: %s", b.Count, clock(b.Start), clock(b.End), b.Outcome)
	}
	text := fmt.Sprintf("%s, held %s by %d: ", clock(b.Start), terminal.Duration(b.Held), b.PID)
	switch {
	case b.Outcome == history.Running:
		return text + "running"
	case b.Outcome == history.Ended && b.By == b.PID:
		text += "ended by its own supervisor at ExpireAfter"
	case b.Outcome == history.Ended:
		text += fmt.Sprintf("ended by force by %d", b.By)
	case b.Outcome == history.Orphaned:
		text += fmt.Sprintf("found dead by %d", b.By)
	default:
		text += b.Outcome.String()
	}
	if b.Signal != "" {
		return text + ", signal " + b.Signal
	}
	if b.Status.Set {
		text += fmt.Sprintf(", status %d", b.Status.Value)
	}
	return text
}

// tick draws denied requests: taller where there were more.
func (w *svg) tick(t *Tick) {
	x := round(plotLeft + (float64(t.Column)+0.5)*plotWidth/float64(w.chart.Columns))
	more := min(5, bits.Len(uint(t.Count()))-1)
	w.add(`<g class="t"><title>%s</title>%s</g>`, escape(t.title()), t.shape(x, more))
}

func (t *Tick) shape(x float64, more int) string {
	const bottom = barTop - 6
	switch {
	case t.Stuck > 0:
		return fmt.Sprintf(`<rect class="stuck" x="%v" y="%v" width="5" height="%v"/>`, round(x-2.5), bottom-8-more, 8+more)
	case t.Full > 0 && t.Full >= t.Busy:
		return fmt.Sprintf(`<path class="full" d="M%v %vl4 4l-4 4l-4 -4z"/>`, x, bottom-8)
	case t.Busy > 0:
		return fmt.Sprintf(`<rect class="busy" x="%v" y="%v" width="2" height="%v"/>`, round(x-1), bottom-7-more, 7+more)
	}
	return fmt.Sprintf(`<circle class="soon" cx="%v" cy="%d" r="2.5"/>`, x, bottom-3)
}

func (t *Tick) title() string {
	text := clock(t.First)
	if t.Count() > 1 {
		text += " to " + clock(t.Last)
	}
	text += ": denied"
	separator := " "
	for _, kind := range []struct {
		n    int
		word string
	}{{t.Busy, "busy"}, {t.TooSoon, "too soon"}, {t.Full, "full"}, {t.Stuck, "stuck"}} {
		if kind.n > 0 {
			text += fmt.Sprintf("%s%d %s", separator, kind.n, kind.word)
			separator = ", "
		}
	}
	return text
}

func clock(t time.Time) string { return t.Local().Format("Jan 2 15:04:05") }

// legend explains each shape in a line at the bottom.
func (w *svg) legend(y int) {
	entries := []struct {
		shape, text string
		width       int
	}{
		{`<rect class="success" y="-9" width="16" height="11" rx="2"/>`, "succeeded", 92},
		{`<rect class="failure" y="-9" width="16" height="11" rx="2"/><rect class="failure" x="14.5" y="-12" width="3" height="17" rx="1"/>`, "failed", 66},
		{`<rect class="ended" y="-9" width="10" height="11" rx="2"/><circle class="disc" cx="11" cy="-3.5" r="6.5"/><path class="kill" d="M8.2 -6.3l5.6 5.6m0 -5.6l-5.6 5.6"/>`, "ended by force", 118},
		{`<rect class="lost" y="-9" width="10" height="11" rx="2"/><circle class="disc odd" cx="11" cy="-3.5" r="6.5"/><text class="q" x="11" text-anchor="middle">?</text>`, "end unknown", 106},
		{`<rect class="running" y="-9" width="16" height="11" rx="2"/>`, "running", 74},
		{`<rect class="running" y="-9" width="16" height="11" rx="2"/><rect class="over" y="-9" width="16" height="11"/>`, "overdue", 76},
		{`<rect class="if" y="-10" width="16" height="13"/>`, "IfElapsed", 84},
		{`<rect class="ex" y="-5" width="16" height="3"/><line class="dl" x1="16" x2="16" y1="-8" y2="1"/>`, "ExpireAfter", 104},
		{`<rect class="busy" x="7" y="-9" width="2" height="10"/>`, "denied: busy", 104},
		{`<circle class="soon" cx="8" cy="-4" r="2.5"/>`, "too soon", 78},
		{`<path class="full" d="M8 -9l4 4l-4 4l-4 -4z"/>`, "full", 46},
		{`<rect class="stuck" x="6" y="-9" width="5" height="10"/>`, "stuck", 0},
	}
	x := 20
	for _, e := range entries {
		w.add(`<g transform="translate(%d %d)">%s<text class="d" x="23">%s</text></g>`, x, y, e.shape, e.text)
		x += e.width + 11
	}
}

// escape makes text fit for an element or an attribute.
func escape(text string) string {
	var b strings.Builder
	for _, r := range terminal.Clean(text) {
		switch r {
		case '&':
			b.WriteString("&amp;")
		case '<':
			b.WriteString("&lt;")
		case '>':
			b.WriteString("&gt;")
		case '"':
			b.WriteString("&quot;")
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
