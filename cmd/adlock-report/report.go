package main

import (
	"cmp"
	"errors"
	"os"
	"time"

	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/insight/history"
	"adlock/lib/insight/report"
	"adlock/lib/insight/terminal"
	"adlock/lib/insight/timeline"
)

var reportVerb = verb{
	options: func(q *query) []config.Option {
		return []config.Option{
			q.sinceOption("all that is recorded"), q.atomOption(),
			{Name: "json", Help: "as one JSON object; durations are seconds", Set: config.Toggle(&q.json)},
			{Name: "csv", Help: "as CSV with a header; durations are seconds", Set: config.Toggle(&q.csv)},
			{Name: "html", Arg: "FILE", Help: "write one page with pictures for a browser instead (-: to standard output)", Set: config.Text(&q.html)},
		}
	},
	apart: [][]string{{"json", "csv", "html"}},
	named: true,
	show:  tellReport,
}

func tellReport(q *query) error {
	now := time.Now()
	since, err := when("since", q.since, now, time.Time{})
	if err != nil {
		return err
	}
	dir, entries, running, err := pastSources("report")
	if err != nil {
		return err
	}
	r, failed := report.Build(history.Read(dir), report.Options{
		Since: since, Now: now, Match: q.matcher(), Running: running,
	})
	tellDamage(r.Damaged, dir, "adlock log")
	if q.atom != "" && r.IsEmpty() {
		q.named = q.named && running != nil // else it may be in a store that does not answer
		if err := q.tellNone("report", dir, entries); err != nil {
			return err
		}
	}
	if q.html == "" {
		return errors.Join(fault.Wrap("standard output", q.writeReport(r, dir, os.Stdout)), fault.Wrap(dir, failed))
	}
	chart, failedToo := timeline.Build(history.Read(dir), timeline.Options{
		Since: since, Until: now, Margin: true, Columns: timeline.SVGColumns, Match: q.matcher(), Running: running,
	})
	page, err := r.HTML(chart)
	if err == nil {
		err = save(q.html, page)
	}
	return errors.Join(err, fault.Wrap(dir, cmp.Or(failed, failedToo)))
}

func (q *query) writeReport(r *report.Report, dir string, out *os.File) (err error) {
	switch {
	case q.json:
		err = encoderOf(out).Encode(r.Object())
	case q.csv:
		err = r.CSV(out)
	case r.IsEmpty() && q.atom != "": // tellNone has reported it
	case r.IsEmpty():
		_, err = out.WriteString(nothingIn(dir))
	default:
		_, err = out.WriteString(r.Text(terminal.Colours(out)))
	}
	return err
}
