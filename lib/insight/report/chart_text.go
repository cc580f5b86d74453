package report

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"adlock/lib/insight/history"
	"adlock/lib/insight/terminal"
)

type ChartText struct {
	Width   int // columns of the terminal; Chart.Columns should be ChartColumns(Width)
	Unicode bool
	Paint   terminal.Paint
}

// ChartColumns is how many columns the chart has on a terminal with width columns.
func ChartColumns(width int) int { return max(10, width-labelWidth(width)-1) }

func labelWidth(width int) int { return min(36, max(8, width/4)) }

type glyphs struct {
	run, brief, overrun           rune // a run; one that is much shorter than a column; past ExpireAfter
	window, grace                 rune // IfElapsed denies; ExpireAfter has not passed
	ended, failed, unknown        rune // how a run ended
	busy, tooSoon, full, stuck    rune // why requests were denied
	several, gap, rule, tickOnTop rune // denials of several kinds; what was cut out; the scale and its marks
}

var (
	unicodeGlyphs = glyphs{'█', '▍', '▓', '░', '·', '✗', '!', '?', '▾', '▿', '◆', '‼', '▼', '…', '─', '┴'}
	asciiGlyphs   = glyphs{'#', '|', '%', '-', '.', 'X', '!', '?', 'b', 's', 'f', 'S', '*', '~', '-', '+'}
)

type cell struct {
	glyph rune
	style terminal.Style
}

func (t ChartText) Render(c *Chart) string {
	g := &asciiGlyphs
	if t.Unicode {
		g = &unicodeGlyphs
	}
	var w strings.Builder
	left := labelWidth(t.Width)
	scale, labels := t.scale(c, g)
	fmt.Fprintf(&w, "%s %s\n%s %s\n", terminal.Pad(c.from.Local().Format("2006-01-02"), left), labels, strings.Repeat(" ", left), t.row(scale))
	names := t.names(c, left, g)
	for i, lane := range c.Lanes {
		name := terminal.Pad(terminal.Cut(names[i], left, string(g.gap)), left)
		if above := t.row(ticks(c, lane, g)); above != "" {
			fmt.Fprintf(&w, "%s %s\n", strings.Repeat(" ", left), above)
		}
		fmt.Fprintf(&w, "%s %s\n", t.Paint.Text(terminal.Bold, name), t.row(bars(c, lane, g)))
	}
	w.WriteString("\n" + t.legend(g))
	return w.String()
}

func (t ChartText) names(c *Chart, width int, g *glyphs) (names []string) {
	for _, lane := range c.Lanes {
		name := terminal.Clean(lane.Text())
		if !t.Unicode {
			name = asciiOnly(name)
		}
		names = append(names, name)
	}
	return terminal.Shortened(names, width, string(g.gap))
}

func asciiOnly(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= utf8.RuneSelf {
			return '?'
		}
		return r
	}, text)
}

// row returns the text of the cells, with one escape sequence for each stretch of a colour and no spaces at the end.
func (t ChartText) row(cells []cell) string {
	end := len(cells)
	for end > 0 && cells[end-1].glyph == ' ' {
		end--
	}
	var w strings.Builder
	for i := 0; i < end; {
		from := i
		var part []rune
		for ; i < end && cells[i].style == cells[from].style; i++ {
			part = append(part, cells[i].glyph)
		}
		w.WriteString(t.Paint.Text(cells[from].style, string(part)))
	}
	return w.String()
}

func blank(c *Chart) []cell {
	cells := make([]cell, c.Columns)
	for i := range cells {
		cells[i].glyph = ' '
	}
	return cells
}

func (t ChartText) scale(c *Chart, g *glyphs) (rule []cell, labels string) {
	rule = blank(c)
	for i := range rule {
		rule[i] = cell{g.rule, terminal.Dim}
	}
	line := []rune(strings.Repeat(" ", c.Columns))
	for _, m := range c.scale(max(1, c.Columns/12)) {
		at := c.column(m.at)
		rule[at].glyph = g.tickOnTop
		if at+len(m.label) <= len(line) {
			copy(line[at:], []rune(m.label))
		}
	}
	return rule, strings.TrimRight(string(line), " ")
}

func ticks(c *Chart, lane *Lane, g *glyphs) []cell {
	cells := blank(c)
	for _, t := range lane.Ticks {
		cells[t.Column] = t.cell(g)
	}
	return cells
}

func (t *Tick) cell(g *glyphs) cell {
	switch n := t.Count(); {
	case t.Stuck > 0:
		return cell{g.stuck, terminal.Alarm}
	case n == t.Busy:
		return cell{g.busy, terminal.Yellow}
	case n == t.TooSoon+t.Paused: // the atom was not due, or a person had paused it
		return cell{g.tooSoon, terminal.Dim}
	case n == t.Full:
		return cell{g.full, terminal.Magenta}
	}
	return cell{g.several, terminal.Yellow}
}

// bars draws the windows first, then the runs, then the marks of their ends: each layer covers those before it.
func bars(c *Chart, lane *Lane, g *glyphs) []cell {
	cells := blank(c)
	for _, b := range lane.Bars {
		if b.expiry().Before(b.Until) { // otherwise ExpireAfter would fill the line up to the next run
			fill(c, cells, b.End, b.expiry(), cell{g.grace, terminal.Dim})
		}
		fill(c, cells, b.End, b.due(), cell{g.window, terminal.Dim})
	}
	column := c.to.Sub(c.from) / time.Duration(c.Columns)
	for _, b := range lane.Bars {
		style := barStyles[b.Outcome]
		if b.Held < column/2 {
			cells[c.column(b.Start)] = cell{g.brief, style}
			continue
		}
		cells[c.column(b.Start)] = cell{g.run, style} // fill begins in the next column
		fill(c, cells, b.Start, b.End, cell{g.run, style})
		if b.overran() {
			fill(c, cells, b.expiry(), b.End, cell{g.overrun, style})
		}
	}
	for _, b := range lane.Bars { // drawn last, so that nothing covers a problem
		if m := b.mark(g); m.glyph != 0 {
			cells[c.column(b.End)] = m
		}
	}
	return cells
}

var barStyles = [history.Outcomes]terminal.Style{
	history.Running: terminal.Cyan, history.Succeeded: terminal.Green, history.Failed: terminal.Red, history.Ended: terminal.Red,
	history.Orphaned: terminal.Yellow, history.Cleared: terminal.Yellow, history.Stopped: terminal.Yellow, history.Lost: terminal.Yellow, history.NotRun: terminal.Red,
}

// mark is the cell that shows how the run ended; it has no glyph if the end is no problem.
func (b *Bar) mark(g *glyphs) cell {
	switch b.Outcome {
	case history.Ended, history.Stopped:
		return cell{g.ended, terminal.Alarm}
	case history.Failed, history.NotRun:
		return cell{g.failed, terminal.Red}
	case history.Orphaned, history.Cleared, history.Lost:
		return cell{g.unknown, terminal.Yellow}
	}
	return cell{}
}

func fill(c *Chart, cells []cell, from, to time.Time, with cell) {
	if !from.Before(to) {
		return
	}
	for i := c.column(from) + 1; i <= c.column(to); i++ {
		cells[i] = with
	}
}

func (t ChartText) legend(g *glyphs) string {
	var w strings.Builder
	used := 0
	for _, e := range [...]struct {
		cell
		text string
	}{
		{cell{g.run, terminal.Green}, "run"}, {cell{g.brief, terminal.Green}, "brief"},
		{cell{g.overrun, terminal.Red}, "past ExpireAfter"}, {cell{g.ended, terminal.Alarm}, "ended by force"},
		{cell{g.failed, terminal.Red}, "failed"}, {cell{g.unknown, terminal.Yellow}, "end unknown"},
		{cell{g.window, terminal.Dim}, "IfElapsed"}, {cell{g.grace, terminal.Dim}, "ExpireAfter"},
		{cell{g.busy, terminal.Yellow}, "denied: busy"}, {cell{g.tooSoon, terminal.Dim}, "too soon, paused"},
		{cell{g.full, terminal.Magenta}, "full"}, {cell{g.stuck, terminal.Alarm}, "stuck"}, {cell{g.several, terminal.Yellow}, "several of these"},
	} {
		width := len(e.text) + 2
		switch {
		case used == 0:
		case used+3+width > t.Width:
			w.WriteString("\n")
			used = 0
		default:
			w.WriteString("   ")
			used += 3
		}
		w.WriteString(t.Paint.Text(e.style, string(e.glyph)) + " " + e.text)
		used += width
	}
	return w.String() + "\n"
}
