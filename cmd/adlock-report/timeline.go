package main

import (
	"errors"
	"os"

	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/insight/history"
	"adlock/lib/insight/report"
	"adlock/lib/insight/terminal"
)

var timelineVerb = verb{
	options: func(q *query) []config.Option {
		return []config.Option{
			q.sinceOption("1d, or when the runlog begins"),
			q.untilOption("now"),
			q.atomOption(),
			{Name: "svg", Arg: "FILE", Help: "write an SVG picture instead (-: to standard output)", Set: config.Text(&q.svg)},
		}
	},
	named: true,
	show:  drawTimeline,
}

func drawTimeline(q *query) error {
	until := q.until.Or(q.now)
	since := q.since.Or(until.AddDate(0, 0, -1))
	if !since.Before(until) {
		return errNoPeriod
	}
	past, err := q.recorded("timeline")
	if err != nil {
		return err
	}
	width := terminal.Width(os.Stdout)
	columns := report.ChartColumns(width)
	if q.svg != "" {
		columns = report.SVGColumns
	}
	chart, failed := report.BuildChart(history.Read(past.dir), report.ChartOptions{
		Since: since, Until: until, Margin: !q.until.Set, Columns: columns, Match: past.chosen.has, State: past.state,
	})
	tellDamage(chart.Damaged, past.dir, "adlock log")
	if q.atom != "" && len(chart.Lanes) == 0 {
		if err := q.tellNone("timeline", past.dir, past.entries); err != nil {
			return err
		}
	}
	switch {
	case q.svg != "":
		err = save(q.svg, chart.SVG())
	case len(chart.Lanes) > 0:
		text := report.ChartText{Width: width, Unicode: terminal.Unicode(), Paint: terminal.Colours(os.Stdout)}
		err = write([]byte(text.Render(chart)))
	case q.atom == "": // else tellNone has reported it
		err = write([]byte(nothingIn(past.dir)))
	}
	return errors.Join(err, fault.Wrap(past.dir, failed))
}
