package report

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"
	"time"

	"adlock/lib/insight/history"
	"adlock/lib/insight/terminal"
	"adlock/lib/limit"
	"adlock/lib/runlog"
)

func header() []string {
	names := []string{"program", "host", "operator", "operand", "runs"}
	for o := range history.Outcomes {
		names = append(names, strings.ReplaceAll(o.String(), "-", "_"))
	}
	return append(names, "busy", "too_soon", "full", "paused", "stuck", "longest_denied_series",
		"runtime_min_seconds", "runtime_p50_seconds", "runtime_p95_seconds", "runtime_max_seconds", "interval_p50_seconds",
		"held_seconds", "held_share", "if_elapsed_seconds", "expire_after_seconds", "advice")
}

func (r *Report) fields(a *summary) []string {
	fields := []string{harmless(a.Program), harmless(a.Host), harmless(a.Operator), harmless(a.Operand), strconv.Itoa(a.Runs)}
	for _, n := range a.Outcomes {
		fields = append(fields, strconv.Itoa(n))
	}
	for _, n := range [...]int{a.Denials.Busy, a.Denials.TooSoon, a.Denials.Full, a.Denials.Paused, a.Denials.Stuck, a.Longest.Count} {
		fields = append(fields, strconv.Itoa(n))
	}
	for _, q := range [...]float64{0, 0.5, 0.95, 1} {
		fields = append(fields, quantileOf(&a.Runtime, q))
	}
	return append(fields, quantileOf(&a.Interval.Durations, 0.5), seconds(a.Held), strconv.FormatFloat(r.share(a), 'f', 6, 64),
		optSeconds(a.IfElapsed), optSeconds(a.ExpireAfter), harmless(joined(a.Advice)))
}

// harmless escapes what does not print, and puts an apostrophe before a text that a spreadsheet takes for a formula.
func harmless(text string) string {
	text = terminal.Escaped(text)
	if text != "" && strings.IndexByte("=+-@", text[0]) >= 0 {
		return "'" + text
	}
	return text
}

func quantileOf(d *history.Durations, q float64) string {
	if d.Count() == 0 {
		return ""
	}
	return seconds(d.Quantile(q))
}

func optSeconds(d runlog.Opt[time.Duration]) string {
	if !d.Set {
		return ""
	}
	return seconds(d.Value)
}

func seconds(d time.Duration) string { return limit.Seconds(d).String() }

func joined(advice []advice) string {
	var texts []string
	for _, a := range advice {
		texts = append(texts, a.Text)
	}
	return strings.Join(texts, "; ")
}

// CSV writes RFC 4180 with LF, durations in seconds, and texts by harmless. If users is set, it begins with the user.
func CSV(out io.Writer, users bool, reports ...*Report) error {
	rows := [][]string{header()}
	if users {
		rows[0] = append([]string{"user"}, rows[0]...)
	}
	for _, r := range reports {
		for _, a := range r.atoms {
			fields := r.fields(a)
			if users {
				fields = append([]string{harmless(r.user)}, fields...)
			}
			rows = append(rows, fields)
		}
	}
	return csv.NewWriter(out).WriteAll(rows)
}
