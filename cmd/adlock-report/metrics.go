package main

import (
	"time"

	"github.com/google/renameio/v2"
	"github.com/urfave/cli/v2"

	"adlock/lib/app"
	"adlock/lib/atom"
	"adlock/lib/exit"
	"adlock/lib/history"
	"adlock/lib/metrics"
)

func metricsVerb() *cli.Command {
	return app.Verb("metrics", "tell Prometheus of each atom: for node_exporter's textfile collector", " ",
		[]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FILE`.prom, replaced as a whole; its counters go on from what it had"},
			&cli.BoolFlag{Name: "openmetrics", Usage: "as OpenMetrics 1.0 (default: the Prometheus text format, which the collector and promtool read)"},
		}, tellMetrics)
}

func tellMetrics(c *cli.Context) error {
	if err := app.NoArguments(c); err != nil {
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
	now := time.Now()
	o := metrics.Options{Now: now, Until: now, Locks: locksOf(entries, now), Running: stillHeld(entries)}
	output := c.String("output")
	if output != "" {
		if o.Before, err = metrics.ReadValues(output); err != nil {
			return exit.Wrap(output, err)
		}
		o.Until = now.Add(-metrics.Settled)
	}
	m, err := metrics.Collect(history.Read(dir), o)
	if err != nil {
		return exit.Wrap(dir, err) // half a record would be counted as all of it
	}
	return put(output, m.Text(formatOf(c)))
}

func formatOf(c *cli.Context) metrics.Format {
	if c.Bool("openmetrics") {
		return metrics.OpenMetrics
	}
	return metrics.Prometheus
}

// put writes the metrics: readable for the collector, which is another user,
// whatever the umask; and never half a file.
func put(output string, text []byte) error {
	if output == "" {
		return write(text)
	}
	return exit.Wrap(output, renameio.WriteFile(output, text, 0o644, renameio.WithStaticPermissions(0o644)))
}

// locksOf leaves out what cannot be read, and names that are told by a checksum
// and were never completed: nothing is known of those.
func locksOf(entries []atom.Entry, now time.Time) []metrics.Lock {
	var locks []metrics.Lock
	for i := range entries {
		e := &entries[i]
		a, known := nameOf(e)
		if e.Err != nil || !known {
			continue
		}
		l := metrics.Lock{Atom: a, Completed: e.Completed}
		if e.Active.Held {
			l.Since = now.Add(-e.Active.Age)
		}
		locks = append(locks, l)
	}
	return locks
}
