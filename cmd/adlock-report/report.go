package main

import (
	"cmp"
	"errors"
	"os"
	"strings"

	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/insight/history"
	"adlock/lib/insight/report"
	"adlock/lib/insight/terminal"
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
	if q.allUsers {
		return q.tellReportOfAll()
	}
	past, err := q.recorded("report")
	if err != nil {
		return err
	}
	r, failed := report.Build(history.Read(past.dir), report.Options{
		Since: q.since.Value, Now: q.now, Match: past.chosen.has, State: past.state,
	})
	tellDamage(r.Damaged, past.dir, "adlock log")
	nothing := nothingIn(past.dir)
	if q.atom != "" && r.IsEmpty() {
		if err := q.tellNone("report", past.dir, past.entries); err != nil {
			return err
		}
		nothing = ""
	}
	if q.html == "" {
		return errors.Join(q.writeReports([]*report.Report{r}, nothing), fault.Wrap(past.dir, failed))
	}
	chart, failedToo := report.BuildChart(history.Read(past.dir), report.ChartOptions{
		Since: q.since.Value, Until: q.now, Margin: true, Columns: report.SVGColumns, Match: past.chosen.has, State: past.state,
	})
	page, err := r.HTML(chart)
	if err == nil {
		err = save(q.html, page)
	}
	return errors.Join(err, fault.Wrap(past.dir, cmp.Or(failed, failedToo)))
}

func (q *query) tellReportOfAll() error {
	users, failed := everyone(q, func(a *account) (*report.Report, error) {
		r, err := report.Build(a.events, report.Options{
			Since: q.since.Value, Now: q.now, Match: a.chosen.has, State: stateIn(a.entries), User: a.user,
		})
		r.Damaged += a.damaged
		tellDamage(r.Damaged, "the runlog of "+a.user, "adlock log as that user")
		a.omitted += r.Limit(mostAtoms)
		a.tellCut(q.since.Value)
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
	return errors.Join(q.writeReports(all, "nothing is recorded of this period for any user\n"), failed)
}

func (q *query) writeReports(all []*report.Report, nothing string) (err error) {
	switch {
	case q.csv:
		err = report.CSV(os.Stdout, q.allUsers, all...)
	case q.json && q.allUsers:
		err = write(arrayOf(all, (*report.Report).Object))
	case q.json:
		err = encoderOf(os.Stdout).Encode(all[0].Object())
	default:
		var texts []string
		for _, r := range all {
			if !r.IsEmpty() {
				texts = append(texts, r.Text(terminal.Colours(os.Stdout)))
			}
		}
		_, err = os.Stdout.WriteString(cmp.Or(strings.Join(texts, "\n"), nothing))
	}
	return fault.Wrap("standard output", err)
}
