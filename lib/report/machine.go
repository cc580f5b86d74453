package report

import (
	"strconv"
	"strings"
	"time"

	"adlock/lib/history"
	"adlock/lib/json"
	"adlock/lib/limit"
	"adlock/lib/quantile"
	"adlock/lib/runlog"
	"adlock/lib/terminal"
)

// JSON is the report as one object; durations are seconds.
func (r *Report) JSON() []byte {
	var w json.Writer
	w.Object("", func() {
		w.Time("from", r.From)
		w.Time("to", r.To)
		w.Int("events", r.Lines)
		w.Int("damaged_lines", r.Damaged)
		w.Array("atoms", func() {
			for _, a := range r.Atoms {
				w.Object("", func() { r.writeAtom(&w, a) })
			}
		})
	})
	return w.Bytes()
}

func (r *Report) writeAtom(w *json.Writer, a *Atom) {
	w.Text("atom", a.Name())
	w.Text("program", a.Program)
	w.Text("host", a.Host)
	w.Text("operator", a.Operator)
	w.Text("operand", a.Operand)
	w.Int("runs", a.Runs)
	w.Object("outcomes", func() {
		for o := range history.Outcomes {
			w.Int(o.String(), a.Outcomes[o])
		}
	})
	w.Object("denials", func() {
		w.Int("busy", a.Busy)
		w.Int("too-soon", a.TooSoon)
		w.Int("full", a.Full)
		w.Int("stuck", a.Stuck)
	})
	w.Object("longest_denied_series", func() {
		w.Int("count", a.Longest.Count)
		w.Time("first", a.Longest.First)
		w.Time("last", a.Longest.Last)
	})
	w.Seconds("held", a.Held)
	w.Float("held_share", r.Share(a))
	writeDigest(w, "runtime", &a.Runtime)
	writeDigest(w, "interval", &a.Interval)
	writeDigest(w, "asked_every", &a.Asked)
	w.OptSeconds("if_elapsed", a.IfElapsed)
	w.OptSeconds("expire_after", a.ExpireAfter)
	w.Array("endings", func() {
		for _, e := range a.Endings {
			w.Object("", func() {
				w.Time("time", e.At)
				w.Int("owner", e.Owner)
				w.Int("by", e.By)
				w.Seconds("age", e.Age)
			})
		}
	})
	w.Array("advice", func() {
		for _, advice := range a.Advice {
			w.Object("", func() {
				w.Text("kind", advice.Kind)
				w.Text("text", advice.Text)
			})
		}
	})
}

func writeDigest(w *json.Writer, key string, d *quantile.Digest) {
	if d.Count() == 0 {
		return
	}
	w.Object(key, func() {
		w.Seconds("min", d.Min())
		w.Seconds("p50", d.Quantile(0.5))
		w.Seconds("p95", d.Quantile(0.95))
		w.Seconds("max", d.Max())
		w.Bool("exact", d.Exact())
	})
}

// header names the columns of the CSV form, in the order of fields.
func header() []string {
	names := []string{"program", "host", "operator", "operand", "runs"}
	for o := range history.Outcomes {
		names = append(names, o.String())
	}
	return append(names, "busy", "too_soon", "full", "stuck", "longest_denied_series",
		"runtime_min_seconds", "runtime_p50_seconds", "runtime_p95_seconds", "runtime_max_seconds", "interval_p50_seconds",
		"held_seconds", "held_share", "if_elapsed_seconds", "expire_after_seconds", "advice")
}

func (r *Report) fields(a *Atom) []string {
	fields := []string{told(a.Program), told(a.Host), told(a.Operator), told(a.Operand), strconv.Itoa(a.Runs)}
	for _, n := range a.Outcomes {
		fields = append(fields, strconv.Itoa(n))
	}
	for _, n := range [...]int{a.Busy, a.TooSoon, a.Full, a.Stuck, a.Longest.Count} {
		fields = append(fields, strconv.Itoa(n))
	}
	for _, q := range [...]float64{0, 0.5, 0.95, 1} {
		fields = append(fields, quantileOf(&a.Runtime, q))
	}
	return append(fields, quantileOf(&a.Interval, 0.5), seconds(a.Held), strconv.FormatFloat(r.Share(a), 'f', 6, 64),
		optSeconds(a.IfElapsed), optSeconds(a.ExpireAfter), told(joined(a.Advice)))
}

// told is a text that others have chosen, for a spreadsheet: without control
// characters, and with an apostrophe before what would be taken for a formula.
func told(text string) string {
	text = terminal.Escaped(text)
	if text != "" && strings.IndexByte("=+-@", text[0]) >= 0 {
		return "'" + text
	}
	return text
}

func quantileOf(d *quantile.Digest, q float64) string {
	switch {
	case d.Count() == 0:
		return ""
	case q == 0:
		return seconds(d.Min())
	case q == 1:
		return seconds(d.Max())
	}
	return seconds(d.Quantile(q))
}

func optSeconds(d runlog.Opt[time.Duration]) string {
	if !d.Set {
		return ""
	}
	return seconds(d.Value)
}

func seconds(d time.Duration) string {
	if d == limit.Never {
		return "never"
	}
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64)
}

func joined(advice []Advice) string {
	var texts []string
	for _, a := range advice {
		texts = append(texts, a.Text)
	}
	return strings.Join(texts, "; ")
}

// CSV is the report as RFC 4180 has it (with LF), a header first; durations
// are seconds, and bytes that are no text are written as \xNN.
func (r *Report) CSV() []byte {
	w := appendLine(nil, header())
	for _, a := range r.Atoms {
		w = appendLine(w, r.fields(a))
	}
	return w
}

func appendLine(w []byte, fields []string) []byte {
	for i, field := range fields {
		if i > 0 {
			w = append(w, ',')
		}
		w = appendField(w, field)
	}
	return append(w, '\n')
}

func appendField(w []byte, text string) []byte {
	if !strings.ContainsAny(text, "\",\r\n") {
		return append(w, text...)
	}
	return append(w, `"`+strings.ReplaceAll(text, `"`, `""`)+`"`...)
}
