package main

import (
	"os"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/insight/history"
	"adlock/lib/insight/metrics"
	"adlock/lib/locker"
	"adlock/lib/policy"
)

var metricsVerb = verb{
	options: func(q *query) []config.Option {
		return []config.Option{
			{Name: "output", Alias: "o", Arg: "FILE.prom", Help: "replace this file as a whole; its counters go on from what it had", Set: config.Text(&q.output)},
			{Name: "openmetrics", Default: "the Prometheus text format, which the collector and promtool read", Help: "as OpenMetrics 1.0", Set: config.Toggle(&q.openMetrics)},
		}
	},
	show: tellMetrics,
}

func tellMetrics(q *query) error {
	dir, entries, running, err := pastSources("metrics")
	if err != nil {
		return err
	}
	now := time.Now()
	o := metrics.Options{Now: now, Until: now, Locks: locksOf(entries, now), Running: running}
	if q.output != "" {
		if err := mayReplace(q.output); err != nil {
			return err
		}
		if !q.openMetrics && !collected(q.output) {
			return fault.New(fault.Usage, q.output, "does not end in .prom: node_exporter's textfile collector would not read it")
		}
		if o.Before, err = metrics.ReadValues(q.output); err != nil {
			return fault.Wrap(q.output, err)
		}
		o.Until = now.Add(-metrics.Settled)
	}
	m, err := metrics.Collect(history.Read(dir), o)
	if err != nil {
		return fault.Wrap(dir, err) // figures of a part would look like those of the whole
	}
	return put(q.output, m.Text(q.format()))
}

// collected reports whether the collector reads a file of this name, or it is no file.
func collected(path string) bool {
	there, err := os.Stat(path)
	return path == "-" || strings.HasSuffix(path, ".prom") || err == nil && !there.Mode().IsRegular()
}

func (q *query) format() metrics.Format {
	if q.openMetrics {
		return metrics.OpenMetrics
	}
	return metrics.Prometheus
}

// put writes the metrics: readable for the collector, which is another user, with any
// umask; and never half a file.
func put(output string, text []byte) error {
	if output == "" {
		return write(text)
	}
	return save(output, text, renameio.WithStaticPermissions(0o644))
}

// locksOf leaves out locks that cannot be read, and names with a checksum that were never
// completed: nothing is known of those. Of an atom of both the lock directory and a store
// it takes the store's.
func locksOf(entries []locker.Entry, now time.Time) []metrics.Lock {
	var locks []metrics.Lock
	last := map[atom.Name]int{}
	for i := range entries {
		last[entries[i].Name] = i
	}
	for i := range entries {
		e := &entries[i]
		if last[e.Name] != i {
			continue
		}
		a := e.Called().Atom
		if e.Err != nil || a == (atom.Atom{}) {
			continue
		}
		l := metrics.Lock{Atom: a, Completed: e.Completed}
		if holder := e.Holder(); holder.Active.Held {
			l.Since = now.Add(-holder.Active.Age)
			asked := policy.Limits{ExpireAfter: holder.Record.ExpireAfter, Source: holder.Record.Source}
			l.Overdue = policy.Expired(asked, holder.Active) || recorderOf(a, &holder).Overdue(asked, holder, holder.Record.Notice) != nil
		}
		locks = append(locks, l)
	}
	return locks
}
