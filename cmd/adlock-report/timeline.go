package main

import (
	"errors"
	"os"
	"time"

	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/insight/history"
	"adlock/lib/insight/terminal"
	"adlock/lib/insight/timeline"
)

var timelineVerb = verb{
	options: func(q *query) []config.Option {
		return []config.Option{
			q.sinceOption("1d, or when the runlog begins"),
			q.untilOption(),
			q.atomOption(),
			{Name: "svg", Arg: "FILE", Help: "write an SVG picture instead (-: to standard output)", Set: config.Text(&q.svg)},
		}
	},
	named: true,
	show:  drawTimeline,
}

func drawTimeline(q *query) error {
	now := time.Now()
	until, err := when("until", q.until, now, now)
	if err != nil {
		return err
	}
	since, err := when("since", q.since, now, until.AddDate(0, 0, -1))
	if err != nil {
		return err
	}
	if !since.Before(until) {
		return errNoPeriod
	}
	dir, entries, state, err := pastSources("timeline")
	if err != nil {
		return err
	}
	width := terminal.Width(os.Stdout)
	columns := timeline.Columns(width)
	if q.svg != "" {
		columns = timeline.SVGColumns
	}
	chart, failed := timeline.Build(history.Read(dir), timeline.Options{
		Since: since, Until: until, Margin: q.until == "", Columns: columns, Match: q.choose(entries, history.Read(dir)).hasPast, State: state,
	})
	tellDamage(chart.Damaged, dir, "adlock log")
	if q.atom != "" && len(chart.Lanes) == 0 {
		q.named = q.named && state != nil // nil: the atom may be in a store that does not answer
		if err := q.tellNone("timeline", dir, entries); err != nil {
			return err
		}
	}
	return errors.Join(q.showChart(chart, dir, width), fault.Wrap(dir, failed))
}

func (q *query) showChart(chart *timeline.Chart, dir string, width int) error {
	switch {
	case q.svg != "":
		return save(q.svg, chart.SVG())
	case len(chart.Lanes) == 0 && q.atom != "": // tellNone has reported it
		return nil
	case len(chart.Lanes) == 0:
		return write([]byte(nothingIn(dir)))
	}
	text := timeline.Text{Width: width, Unicode: terminal.Unicode(), Paint: terminal.Colours(os.Stdout)}
	return write([]byte(text.Render(chart)))
}
