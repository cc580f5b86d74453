package metrics

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"adlock/lib/atom"
	"adlock/lib/insight/history"
	"adlock/lib/insight/terminal"
	"adlock/lib/limit"
	"adlock/lib/runlog"
)

// countedUntil is how the next collection knows where to go on.
const countedUntil = "adlock_counted_until_timestamp_seconds"

// labels are an atom's: UTF-8, as every reader requires, without characters that could move the
// cursor of a person's terminal.
func labels(a atom.Atom) string {
	return "program=" + quote(a.Program) + ",host=" + quote(a.Host) + ",operator=" + quote(a.Operator) + ",operand=" + quote(a.Operand)
}

var quoted = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

func quote(value string) string { return `"` + quoted.Replace(terminal.Escaped(value)) + `"` }

// sorted are the atoms by their labels. Of two with the same labels one is left
// out: Prometheus refuses a whole file in which a series comes twice.
func (b *builder) sorted() []*figures {
	var all []*figures
	for _, f := range b.atoms {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b *figures) int { return strings.Compare(a.labels, b.labels) })
	return slices.CompactFunc(all, func(a, b *figures) bool { return a.labels == b.labels })
}

// Format is a form of the text.
type Format int

// The forms. The collector of node_exporter and promtool read the first.
const (
	Prometheus  Format = iota // the text format 0.0.4
	OpenMetrics               // OpenMetrics 1.0
)

// Text is the metrics as text.
func (m *Metrics) Text(format Format) []byte {
	w := &writer{format: format, before: m.before}
	for _, g := range gauges {
		w.family(g.name, "gauge", g.unit, g.help)
		for _, f := range m.atoms {
			g.write(w, f)
		}
	}
	w.counters(m.atoms)
	w.histogram(m.atoms)
	w.family(countedUntil, "gauge", "seconds", "Events up to this time are in the counters.")
	w.sample(countedUntil, "", seconds(m.until))
	w.family("adlock_damaged_lines", "gauge", "", "Lines of the runlog that cannot be read.")
	w.sample("adlock_damaged_lines", "", float64(m.damaged))
	if format == OpenMetrics {
		w.text = append(w.text, "# EOF\n"...)
	}
	return w.text
}

type writer struct {
	text   []byte
	format Format
	before Values
}

// family begins a metric. OpenMetrics calls a counter by its name without
// _total, and has units.
func (w *writer) family(name, kind, unit, help string) {
	if w.format == OpenMetrics {
		name = strings.TrimSuffix(name, "_total")
	}
	w.text = fmt.Appendf(w.text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	if w.format == OpenMetrics && unit != "" {
		w.text = fmt.Appendf(w.text, "# UNIT %s %s\n", name, unit)
	}
}

func series(name, labels string) string {
	if labels == "" {
		return name
	}
	return name + "{" + labels + "}"
}

func (w *writer) sample(name, labels string, value float64) {
	w.text = append(append(w.text, series(name, labels)...), ' ')
	w.text = append(strconv.AppendFloat(w.text, value, 'f', -1, 64), '\n')
}

// gauge writes a value, or if that is unknown the one of the last time.
func (w *writer) gauge(name, labels string, value float64, known bool) {
	if !known {
		value, known = w.before[series(name, labels)]
	}
	if known {
		w.sample(name, labels, value)
	}
}

// counter adds to the count of the last time.
func (w *writer) counter(name, labels string, more float64) {
	w.sample(name, labels, w.before[series(name, labels)]+more)
}

// gauges are the metrics with one value for each atom.
var gauges = [...]struct {
	name, unit, help string
	write            func(w *writer, f *figures)
}{
	{"adlock_last_success_timestamp_seconds", "seconds", "When a run last succeeded.", func(w *writer, f *figures) {
		w.gauge("adlock_last_success_timestamp_seconds", f.labels, seconds(f.success), !f.success.IsZero())
	}},
	{"adlock_last_completion_timestamp_seconds", "seconds", "When a run last completed, however that went, or was ended: what IfElapsed counts from.", func(w *writer, f *figures) {
		if !f.completed.IsZero() {
			w.sample("adlock_last_completion_timestamp_seconds", f.labels, seconds(f.completed))
		}
	}},
	{"adlock_running_since_timestamp_seconds", "seconds", "When the run that holds the lock began; absent where nothing runs.", func(w *writer, f *figures) {
		if !f.since.IsZero() {
			w.sample("adlock_running_since_timestamp_seconds", f.labels, seconds(f.since))
		}
	}},
	{"adlock_overdue", "", "1 while the run that holds the lock is past its limit or its notice, else 0.", func(w *writer, f *figures) {
		w.sample("adlock_overdue", f.labels, f.overdue)
	}},
	{"adlock_run_interval_seconds", "seconds", "Median time from one start to the next.", func(w *writer, f *figures) {
		w.gauge("adlock_run_interval_seconds", f.labels, f.interval.Quantile(0.5).Seconds(), f.interval.Count() > 0)
	}},
	{"adlock_limit_seconds", "seconds", "The limits last asked for.", func(w *writer, f *figures) {
		w.limit(f.labels, "if_elapsed", f.limits.IfElapsed)
		w.limit(f.labels, "expire_after", f.limits.ExpireAfter)
	}},
	{"adlock_denials_in_a_row", "", "Requests denied since the last run began though the atom was due.", func(w *writer, f *figures) {
		w.sample("adlock_denials_in_a_row", f.labels, float64(f.inARow))
	}},
}

func (w *writer) limit(labels, which string, value runlog.Opt[time.Duration]) {
	text := value.Value.Seconds()
	if value.Value == limit.Never {
		text = math.Inf(1)
	}
	w.gauge("adlock_limit_seconds", labels+`,limit="`+which+`"`, text, value.Set)
}

// counters writes verdicts and kinds of events even if they never came: Prometheus sees no
// increase from a series that was missing.
func (w *writer) counters(atoms []*figures) {
	w.family("adlock_runs_total", "counter", "", "Runs by how they ended.")
	for _, f := range atoms {
		for o := history.Succeeded; o < history.Outcomes; o++ {
			w.counter("adlock_runs_total", f.labels+`,outcome="`+o.String()+`"`, float64(f.outcomes[o]))
		}
	}
	w.family("adlock_denials_total", "counter", "", "Requests denied, by the verdict.")
	for _, f := range atoms {
		for verdict, n := range f.denials.Each {
			w.counter("adlock_denials_total", f.labels+`,verdict="`+verdict+`"`, float64(n))
		}
	}
	w.family("adlock_events_total", "counter", "", "Lines of the runlog, by their kind.")
	for _, f := range atoms {
		for _, kind := range runlog.Kinds() {
			w.counter("adlock_events_total", f.labels+`,event="`+string(kind)+`"`, float64(f.events[kind]))
		}
	}
}

// histogram writes how long runs took. The buckets are cumulative, here and in the file of the
// last time.
func (w *writer) histogram(atoms []*figures) {
	const name = "adlock_run_duration_seconds"
	w.family(name, "histogram", "seconds", "How long runs that completed held the atom.")
	for _, f := range atoms {
		sum := 0
		for i, bound := range bounds {
			sum += f.durations[i]
			w.counter(name+"_bucket", f.labels+`,le="`+strconv.FormatFloat(bound, 'f', 1, 64)+`"`, float64(sum))
		}
		sum += f.durations[len(bounds)]
		w.counter(name+"_bucket", f.labels+`,le="+Inf"`, float64(sum))
		w.counter(name+"_sum", f.labels, f.sum.Seconds())
		w.counter(name+"_count", f.labels, float64(sum))
	}
}

// seconds since the epoch, to the millisecond.
func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
