package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"

	"adlock/lib/insight/report"
)

// The layout of the picture, in its own units.
const (
	width    = 1000
	nameEnds = 400 // the names end where the bars begin
	barsEnd  = width - 110
	barHigh  = 9
	least    = 0.01 // the ends of the scale of ratios, which is logarithmic
	most     = 200
)

// at returns the position of a ratio.
func at(ratio float64) float64 {
	share := math.Log(min(max(ratio, least), most)/least) / math.Log(most/least)
	return nameEnds + share*(barsEnd-nameEnds)
}

// drawing is a picture in progress, from top to bottom.
type drawing struct {
	bytes.Buffer
	y int
}

func (d *drawing) add(format string, values ...any) { fmt.Fprintf(d, format+"\n", values...) }

// draw makes a picture of all ratios: a bar for each shell, from 1 (the first way of the table) to
// the ratio, and a line for the middle half of the rounds. A goal is a mark, green if reached.
func draw(results []result) []byte {
	var d drawing
	d.y = 30
	for _, r := range results {
		d.table(r)
	}
	var whole bytes.Buffer
	height := d.y + 20
	fmt.Fprintf(&whole, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" %s font-size="12" %s role="img" aria-label="What a lock costs">`,
		width, height, width, height, report.Font, report.Fill(report.Ink))
	fmt.Fprintf(&whole, "<style>%s</style>\n<rect %s width=\"%d\" height=\"%d\"/>\n", report.StyleSheet(), report.Fill(report.Ground), width, height)
	for _, ratio := range []float64{0.01, 0.1, 1, 10, 100} {
		fmt.Fprintf(&whole, `<path %s d="M%.1f 24V%d"/><text %s x="%.1f" y="18" text-anchor="middle">%g</text>`+"\n",
			report.Stroke(report.Line), at(ratio), height-10, report.Fill(report.Dim), at(ratio), ratio)
	}
	whole.Write(d.Bytes())
	whole.WriteString("</svg>\n")
	return whole.Bytes()
}

func (d *drawing) table(r result) {
	if len(r.columns) == 0 || len(r.ways) < 2 {
		return
	}
	d.y += 26
	d.add(`<text x="12" y="%d" font-weight="600">%s</text>`, d.y, escaped(r.letter+": "+r.title+", beside "+r.ways[0].name))
	d.y += 6
	for _, v := range r.ways[1:] {
		if r.measured(v) {
			d.way(r, v)
		}
	}
}

func (d *drawing) way(r result, v way) {
	top := d.y
	for _, c := range r.columns {
		ratio, found := c.beside(v.name, r.ways[0].name)
		if !found || ratio.median <= 0 {
			continue
		}
		d.bar(c, v, ratio)
		for _, g := range v.goals {
			if g.beside == r.ways[0].name {
				d.mark(g.in(c.shell), ratio.median)
			}
		}
		d.y += barHigh + 3
	}
	if d.y > top {
		d.add(`<text %s x="%d" y="%d" text-anchor="end">%s</text>`, report.Fill(report.Ink), nameEnds-8, (top+d.y)/2+4, escaped(v.name))
		d.y += 5
	}
}

func (d *drawing) bar(c column, v way, ratio spread) {
	colour := report.Dim
	if len(v.goals) > 0 {
		colour = report.Now
	}
	from, to := min(at(1), at(ratio.median)), max(at(1), at(ratio.median))
	d.add(`<rect %s x="%.1f" y="%d" width="%.1f" height="%d"/>`, report.Fill(colour), from, d.y, max(1, to-from), barHigh)
	d.add(`<path %s d="M%.1f %dH%.1f"/>`, report.Stroke(report.Ink), at(ratio.low), d.y+barHigh/2, at(ratio.high))
	d.add(`<text %s font-size="10" x="%d" y="%d">%s %s</text>`, report.Fill(report.Dim), barsEnd+6, d.y+barHigh-1, digits(ratio.median), escaped(c.shell))
}

func (d *drawing) mark(goal, ratio float64) {
	colour := report.Good
	if ratio > goal {
		colour = report.Bad
	}
	d.add(`<path %s stroke-width="2" d="M%.1f %dv%d"/>`, report.Stroke(colour), at(goal), d.y-2, barHigh+4)
}

func escaped(text string) string {
	var w bytes.Buffer
	_ = xml.EscapeText(&w, []byte(text))
	return w.String()
}
