package main

import (
	"fmt"
	"html"
	"math"
	"strings"
	"time"
)

// The plot has a panel for each load: its runs from left to right, how long they
// took (logarithmic), and the ExpireAfter that auto granted them.
const (
	plotted     = 8   // loads: the first
	plottedRuns = 600 // of each, around the step where there is one
	columns     = 2
	panelWidth  = 400.0
	panelHeight = 150.0
	left, right = 44.0, 12.0
	above       = 30.0 // a panel, for its title
	head, foot  = 60.0, 30.0
	plotWidth   = columns * (left + panelWidth + right)
)

const plotStyle = `
svg { font: 12px system-ui, sans-serif; background: #fff; --ink: #333; --grid: #e4e4e4; --run: #6b8fb5; --limit: #b35c00; --fixed: #999; --wrong: #c00; --hung: #666 }
@media (prefers-color-scheme: dark) { svg { background: #161616; --ink: #ccc; --grid: #2e2e2e; --run: #5f87b0; --limit: #f0a040; --fixed: #777; --wrong: #ff5c5c; --hung: #aaa } }
text { fill: var(--ink) } .title { font-weight: 600 } .axis { font-size: 10px }
path { fill: none } .grid { stroke: var(--grid) } .run { stroke: var(--run); stroke-width: 2.2; stroke-linecap: round }
.limit { stroke: var(--limit); stroke-width: 1.4 } .fixed { stroke: var(--fixed); stroke-dasharray: 5 4 }
.wrong { stroke: var(--wrong); stroke-width: 2 } .hung { stroke: var(--hung); stroke-width: 1.2 }
`

// plot draws the SVG.
func plot() []byte {
	rows := (plotted + columns - 1) / columns
	height := head + float64(rows)*(above+panelHeight) + foot
	var w strings.Builder
	fmt.Fprintf(&w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" role="img" aria-labelledby="t d">`, plotWidth, height)
	w.WriteString("\n<title id=\"t\">How the learned ExpireAfter follows the runtimes</title>\n")
	fmt.Fprintf(&w, "<desc id=\"d\">%d panels, one for each load: runtimes as dots, the learned limit as a line above them.</desc>\n", plotted)
	w.WriteString("<style>" + plotStyle + "</style>\n")
	legend(&w)
	for i, l := range loads[:plotted] {
		x := left + float64(i%columns)*(left+panelWidth+right)
		y := head + float64(i/columns)*(above+panelHeight)
		fmt.Fprintf(&w, "<g transform=\"translate(%g %g)\">\n", x, y)
		drawPanel(&w, l)
		w.WriteString("</g>\n")
	}
	fmt.Fprintf(&w, "<text class=\"axis\" x=\"%g\" y=\"%g\">%d runs in each panel, from left to right; the time they took, logarithmic</text>\n</svg>\n", left, height-10, plottedRuns)
	return []byte(w.String())
}

func legend(w *strings.Builder) {
	x := left
	for _, entry := range []struct{ class, path, text string }{
		{"run", "m10 0h0", "a run"},
		{"limit", "h20", "ExpireAfter, auto"},
		{"fixed", "h20", "90 minutes, fixed"},
		{"wrong", "m6 -4l8 8m0 -8l-8 8", "healthy, ended by mistake"},
		{"hung", "m10 -4v8", "hung, ended"},
	} {
		fmt.Fprintf(w, "<path class=\"%s\" d=\"M%g 20%s\"/><text x=\"%g\" y=\"24\">%s</text>\n", entry.class, x, entry.path, x+26, entry.text)
		x += 44 + 6.6*float64(len(entry.text))
	}
}

// paths collects what is drawn of one load, by class.
type paths struct{ run, limit, wrong, hung strings.Builder }

func drawPanel(w *strings.Builder, l load) {
	fmt.Fprintf(w, "<title>%s</title>\n<text class=\"title\" y=\"-6\">%s</text>\n", html.EscapeString(l.name), html.EscapeString(l.name))
	for _, mark := range []struct {
		at   time.Duration
		text string
	}{{time.Minute, "1m"}, {10 * time.Minute, "10m"}, {time.Hour, "1h"}, {6 * time.Hour, "6h"}, {24 * time.Hour, "1d"}} {
		fmt.Fprintf(w, "<path class=\"grid\" d=\"M0 %.1fh%g\"/><text class=\"axis\" x=\"-6\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
			heightOf(mark.at), panelWidth, heightOf(mark.at)+3, mark.text)
	}
	p := pathsOf(l)
	fmt.Fprintf(w, "<path class=\"fixed\" d=\"M0 %.1fh%g\"/>\n", heightOf(fixedExpireAfter), panelWidth)
	for _, drawn := range []struct {
		class string
		path  *strings.Builder
	}{{"run", &p.run}, {"limit", &p.limit}, {"hung", &p.hung}, {"wrong", &p.wrong}} {
		if drawn.path.Len() > 0 {
			fmt.Fprintf(w, "<path class=\"%s\" d=\"%s\"/>\n", drawn.class, drawn.path.String())
		}
	}
}

func pathsOf(l load) *paths {
	p := &paths{}
	first := max(0, l.step-plottedRuns/2)
	world := newWorld(l, learned, 1)
	world.watch = func(e ending) {
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

// heightOf is where a time stands in a panel, from 10 seconds at its foot to two
// days at its top.
func heightOf(d time.Duration) float64 {
	const least, most = 10.0, 2 * 24 * 3600.0
	at := math.Log(d.Seconds()/least) / math.Log(most/least)
	return panelHeight * (1 - min(1, max(0, at)))
}
