package main

import (
	"fmt"
	"html"
	"math"
	"strings"
	"time"

	"adlock/lib/insight/report"
)

// The plot has a panel for each load: its runs from left to right, how long they took
// (logarithmic), and the ExpireAfter that auto granted them.
const (
	plotted     = 8   // so many of the loads, from the first
	plottedRuns = 600 // of each load, around the step if it has one
	columns     = 2
	panelWidth  = 400.0
	panelHeight = 150.0
	left, right = 44.0, 12.0
	above       = 30.0 // the space above a panel, for its title
	head, foot  = 60.0, 30.0
	plotWidth   = columns * (left + panelWidth + right)
)

// These are the paints of the parts: literal colours, which report.StyleSheet replaces by dark ones.
var (
	axisPaint  = report.Fill(report.Dim) + ` font-size="10"`
	gridPaint  = report.Stroke(report.Line)
	runsPaint  = report.Stroke(report.Now) + ` stroke-width="2.2" stroke-linecap="round"`
	limitPaint = report.Stroke(report.Odd) + ` stroke-width="1.4"`
	fixedPaint = report.Stroke(report.Dim) + ` stroke-dasharray="5 4"`
	wrongPaint = report.Stroke(report.Bad) + ` stroke-width="2"`
	hungPaint  = report.Stroke(report.Ink) + ` stroke-width="1.2"`
)

func plot() []byte {
	rows := (plotted + columns - 1) / columns
	height := head + float64(rows)*(above+panelHeight) + foot
	var w strings.Builder
	fmt.Fprintf(&w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" %s font-size="12" %s role="img" aria-labelledby="t d">`, plotWidth, height, report.Font, report.Fill(report.Ink))
	w.WriteString("\n<title id=\"t\">How the learned ExpireAfter follows the runtimes</title>\n")
	fmt.Fprintf(&w, "<desc id=\"d\">%d panels, one for each load: runtimes as dots, the learned limit as a line above them.</desc>\n", plotted)
	fmt.Fprintf(&w, "<style>%s</style>\n<rect %s width=\"%g\" height=\"%g\"/>\n", report.StyleSheet(), report.Fill(report.Ground), plotWidth, height)
	legend(&w)
	for i, l := range loads[:plotted] {
		x := left + float64(i%columns)*(left+panelWidth+right)
		y := head + float64(i/columns)*(above+panelHeight)
		fmt.Fprintf(&w, "<g transform=\"translate(%g %g)\">\n", x, y)
		drawPanel(&w, l)
		w.WriteString("</g>\n")
	}
	fmt.Fprintf(&w, "<text %s x=\"%g\" y=\"%g\">%d runs in each panel, from left to right; the time they took, logarithmic</text>\n</svg>\n", axisPaint, left, height-10, plottedRuns)
	return []byte(w.String())
}

func legend(w *strings.Builder) {
	x := left
	for _, entry := range []struct{ paint, path, text string }{
		{runsPaint, "m10 0h0", "a run"},
		{limitPaint, "h20", "ExpireAfter, auto"},
		{fixedPaint, "h20", "90 minutes, fixed"},
		{wrongPaint, "m6 -4l8 8m0 -8l-8 8", "healthy, ended by mistake"},
		{hungPaint, "m10 -4v8", "hung, ended"},
	} {
		fmt.Fprintf(w, "<path %s d=\"M%g 20%s\"/><text x=\"%g\" y=\"24\">%s</text>\n", entry.paint, x, entry.path, x+26, entry.text)
		x += 44 + 6.6*float64(len(entry.text))
	}
}

// paths holds the paths of one load, one for each paint.
type paths struct{ run, limit, wrong, hung strings.Builder }

func drawPanel(w *strings.Builder, l load) {
	fmt.Fprintf(w, "<title>%s</title>\n<text font-weight=\"600\" y=\"-6\">%s</text>\n", html.EscapeString(l.name), html.EscapeString(l.name))
	for _, mark := range []struct {
		at   time.Duration
		text string
	}{{time.Minute, "1m"}, {10 * time.Minute, "10m"}, {time.Hour, "1h"}, {6 * time.Hour, "6h"}, {24 * time.Hour, "1d"}} {
		fmt.Fprintf(w, "<path %s d=\"M0 %.1fh%g\"/><text %s x=\"-6\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
			gridPaint, heightOf(mark.at), panelWidth, axisPaint, heightOf(mark.at)+3, mark.text)
	}
	p := pathsOf(l)
	fmt.Fprintf(w, "<path %s d=\"M0 %.1fh%g\"/>\n", fixedPaint, heightOf(fixedExpireAfter), panelWidth)
	for _, drawn := range []struct {
		paint string
		path  *strings.Builder
	}{{runsPaint, &p.run}, {limitPaint, &p.limit}, {hungPaint, &p.hung}, {wrongPaint, &p.wrong}} {
		if drawn.path.Len() > 0 {
			fmt.Fprintf(w, "<path %s d=\"%s\"/>\n", drawn.paint, drawn.path.String())
		}
	}
}

func pathsOf(l load) *paths {
	p := &paths{}
	first := max(0, l.step-plottedRuns/2)
	world := newWorld(l, learned, 1)
	world.onEnd = func(e ending) {
		if e.number >= first {
			p.add(e, panelWidth*float64(e.number-first)/plottedRuns)
		}
	}
	world.play(first+plottedRuns, horizon)
	return p
}

func (p *paths) add(e ending, x float64) {
	verb := "L"
	if p.limit.Len() == 0 {
		verb = "M"
	}
	fmt.Fprintf(&p.limit, "%s%.1f %.1f", verb, x, heightOf(e.granted))
	switch y := heightOf(e.at - e.began); {
	case !e.byForce:
		fmt.Fprintf(&p.run, "M%.1f %.1fh0", x, y)
	case e.hangs():
		fmt.Fprintf(&p.hung, "M%.1f %.1fv8", x, y-4)
	default:
		fmt.Fprintf(&p.wrong, "M%.1f %.1fl8 8m0 -8l-8 8", x-4, y-4)
	}
}

// heightOf returns the position of a duration in a panel, from 10 seconds at the foot to two days at the top.
func heightOf(d time.Duration) float64 {
	const least, most = 10.0, 2 * 24 * 3600.0
	at := math.Log(d.Seconds()/least) / math.Log(most/least)
	return panelHeight * (1 - min(1, max(0, at)))
}
