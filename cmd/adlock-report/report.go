package main

import (
	"errors"
	"os"
	"time"

	"github.com/urfave/cli/v2"

	"adlock/lib/app"
	"adlock/lib/exit"
	"adlock/lib/history"
	"adlock/lib/report"
	"adlock/lib/terminal"
)

func reportVerb() *cli.Command {
	return app.Verb("report", "sum up what the record tells of each atom, with advice", " ",
		[]cli.Flag{
			sinceFlag("all that is recorded"), atomFlag(),
			&cli.BoolFlag{Name: "json", Usage: "as one JSON object; durations are seconds"},
			&cli.BoolFlag{Name: "csv", Usage: "as CSV with a header; durations are seconds"},
		}, tellReport)
}

func tellReport(c *cli.Context) error {
	if err := errors.Join(app.NoArguments(c), app.OneOf(c, "json", "csv")); err != nil {
		return err
	}
	now := time.Now()
	since, err := when(c, "since", now, time.Time{})
	if err != nil {
		return err
	}
	dir, err := recordDir()
	if err != nil {
		return err
	}
	entries, err := atoms()
	if err != nil {
		return err
	}
	r, failed := report.Build(history.Read(dir), report.Options{
		Since: since, Now: now, Match: matcher(c), Running: stillHeld(entries),
	})
	tellDamage(r.Damaged, dir)
	return errors.Join(write(reportAs(c, r)), exit.Wrap(dir, failed))
}

func reportAs(c *cli.Context, r *report.Report) []byte {
	switch {
	case c.Bool("json"):
		return r.JSON()
	case c.Bool("csv"):
		return r.CSV()
	}
	return []byte(r.Text(terminal.Colours(os.Stdout)))
}
