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
			q.sinceOption("all that is recorded"), q.atomOption(), q.allUsersOption(),
			{Name: "json", Help: "as one JSON object; durations are seconds", Set: config.Toggle(&q.json)},
			{Name: "csv", Help: "as CSV with a header; durations are seconds", Set: config.Toggle(&q.csv)},
			{Name: "html", Arg: "FILE", Help: "write one page with pictures for a browser instead (-: to standard output)", Set: config.Text(&q.html)},
		}
	},
	exclusive: [][]string{{"json", "csv", "html"}, {"all-users", "html"}},
	named:     true,
	show:      tellReport,
}

func tellReport(q *query) error {
	now := time.Now()
	since, err := when("since", q.since, now, time.Time{})
	if err != nil {
		return err
	}
	if q.allUsers {
		return q.tellReportOfAll(since, now)
	}
	past, err := q.recorded("report")
	if err != nil {
		return err
	}
	dir := past.dir
	r, failed := report.Build(history.Read(dir), report.Options{
		Since: since, Now: now, Match: past.chosen.hasPast, State: past.state,
	})
	tellDamage(r.Damaged, dir, "adlock log")
	if q.atom != "" && r.IsEmpty() {
		if err := q.tellNone("report", dir, past.entries); err != nil {
			return err
		}
	}
	if q.html == "" {
		return errors.Join(fault.Wrap("standard output", q.writeReport(r, dir, os.Stdout)), fault.Wrap(dir, failed))
	}
	chart, failedToo := timeline.Build(history.Read(dir), timeline.Options{
		Since: since, Until: now, Margin: true, Columns: timeline.SVGColumns, Match: past.chosen.hasPast, State: past.state,
	})
	page, err := r.HTML(chart)
	if err == nil {
		err = save(q.html, page)
	}
	return errors.Join(err, fault.Wrap(dir, cmp.Or(failed, failedToo)))
}

// tellReportOfAll shows the report of each user.
func (q *query) tellReportOfAll(since, now time.Time) error {
	users, failed := everyone(q, func(a *account) (*report.Report, error) {
		r, err := report.Build(a.events, report.Options{
			Since: since, Now: now, Match: a.chosen.hasPast, State: stateIn(a.entries), User: a.user,
		})
		r.Damaged += a.damaged
		tellDamage(r.Damaged, "the runlog of "+a.user, "adlock log as that user")
		a.omitted += r.Limit(mostAtoms)
		a.tellCut(since)
		return r, err
	})
	if users == nil {
		return failed
	}
	var all []*report.Report
	for _, of := range users {
		if of.value != nil && !of.value.IsEmpty() {
			all = append(all, of.value)
		}
	}
	if len(all) == 0 && q.named {
		return errors.Join(failed, q.noAtom("report"))
	}
	return errors.Join(fault.Wrap("standard output", q.writeReports(all, os.Stdout)), failed)
}

func (q *query) writeReports(all []*report.Report, out *os.File) error {
	switch {
	case q.csv:
		return report.CSV(out, true, all...)
	case q.json:
		objects := []any{}
		for _, r := range all {
			objects = append(objects, r.Object())
		}
		return encoderOf(out).Encode(objects)
	case len(all) == 0:
		_, err := out.WriteString("nothing is recorded of this period for any user\n")
		return err
	}
	for i, r := range all {
		text := r.Text(terminal.Colours(out))
		if i > 0 {
			text = "\n" + text
		}
		if _, err := out.WriteString(text); err != nil {
			return err
		}
	}
	return nil
}

func (q *query) writeReport(r *report.Report, dir string, out *os.File) (err error) {
	switch {
	case q.json:
		err = encoderOf(out).Encode(r.Object())
	case q.csv:
		err = report.CSV(out, false, r)
	case r.IsEmpty() && q.atom != "": // tellNone has reported it
	case r.IsEmpty():
		_, err = out.WriteString(nothingIn(dir))
	default:
		_, err = out.WriteString(r.Text(terminal.Colours(out)))
	}
	return err
}
