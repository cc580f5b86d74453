package main

import (
	"errors"
	"os"
	"time"

	"github.com/google/renameio/v2"
	"github.com/urfave/cli/v2"

	"adlock/lib/app"
	"adlock/lib/exit"
	"adlock/lib/history"
	"adlock/lib/terminal"
	"adlock/lib/timeline"
)

func timelineVerb() *cli.Command {
	return app.Verb("timeline", "draw when each atom ran, was denied and was ended", " ",
		[]cli.Flag{
			sinceFlag("1d, or when the record begins"),
			&cli.StringFlag{Name: "until", Usage: "`WHEN`: where the picture ends (default: now)"},
			atomFlag(),
			&cli.StringFlag{Name: "svg", Usage: "`FILE`: write an SVG picture instead (-: to standard output)"},
		}, drawTimeline)
}

func drawTimeline(c *cli.Context) error {
	if err := app.NoArguments(c); err != nil {
		return err
	}
	now := time.Now()
	until, err := when(c, "until", now, now)
	if err != nil {
		return err
	}
	since, err := when(c, "since", now, until.AddDate(0, 0, -1))
	if err != nil {
		return err
	}
	if !since.Before(until) {
		return exit.New(exit.Usage, "--since", "is not before --until")
	}
	dir, err := recordDir()
	if err != nil {
		return err
	}
	entries, err := atoms()
	if err != nil {
		return err
	}
	width := terminal.Width(os.Stdout)
	columns := timeline.Columns(width)
	if c.IsSet("svg") {
		columns = timeline.SVGColumns
	}
	chart, failed := timeline.Build(history.Read(dir), timeline.Options{
		Since: since, Until: until, Margin: !c.IsSet("until"), Columns: columns, Match: matcher(c), Running: stillHeld(entries),
	})
	tellDamage(chart.Damaged, dir)
	return errors.Join(showChart(c, chart, width), exit.Wrap(dir, failed))
}

func showChart(c *cli.Context, chart *timeline.Chart, width int) error {
	switch file := c.String("svg"); {
	case file == "-":
		return write(chart.SVG())
	case c.IsSet("svg"):
		return exit.Wrap(file, renameio.WriteFile(file, chart.SVG(), 0o644))
	case len(chart.Lanes) == 0:
		return write([]byte("nothing is recorded of this period\n"))
	}
	text := timeline.Text{Width: width, Unicode: terminal.Unicode(), Paint: terminal.Colours(os.Stdout)}
	return write([]byte(text.Render(chart)))
}
