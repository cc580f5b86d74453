package metrics

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"adlock/lib/atom"
	"adlock/lib/insight/terminal"
)

const (
	countedUntil = "adlock_counted_until_timestamp_seconds"
	notRun       = "adlock_not_run_total"
	failures     = "adlock_failures_in_a_row"
	denials      = "adlock_denials_in_a_row"
	stuck        = "adlock_stuck"
	lastSuccess  = "adlock_last_success_timestamp_seconds"
	interval     = "adlock_run_interval_seconds"
	denied       = "adlock_denials_total"

	userCountedUntil = "adlock_user_counted_until_timestamp_seconds"
)

// labels returns an atom's labels in UTF-8, as Prometheus requires, without characters that could move a cursor.
// With a user, it adds the user's label and shortens long words (atom.Canonify).
func labels(user string, a atom.Atom) string {
	if user != "" {
		for _, part := range []*string{&a.Program, &a.Host, &a.Operator, &a.Operand} {
			if len(*part) > longestOfUser {
				*part = atom.Canonify(*part)
			}
		}
	}
	return userPart(user) + "program=" + quote(a.Program) + ",host=" + quote(a.Host) + ",operator=" + quote(a.Operator) + ",operand=" + quote(a.Operand)
}

func userPart(name string) string {
	if name == "" {
		return ""
	}
	return userLabel(name) + ","
}

func userLabel(name string) string { return "user=" + quote(name) }

var quoted = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

func quote(value string) string {
	return `"` + quoted.Replace(terminal.Escaped(value)) + `"`
}

// sorted leaves out retired and unrequested atoms, and all but one with equal labels, as Prometheus refuses duplicates.
func (b *builder) sorted(o *Options) []*figures {
	var all []*figures
	for a, f := range b.atoms {
		if (o.There == nil || !f.endsWithLock || o.There(a)) && (o.Match == nil || o.Match(a)) {
			all = append(all, f)
		}
	}
	sortFigures(all)
	return slices.CompactFunc(all, func(a, b *figures) bool { return a.labels == b.labels })
}

func sortFigures(all []*figures) {
	slices.SortFunc(all, func(a, b *figures) int { return strings.Compare(a.labels, b.labels) })
}

// Text is the metrics in Prometheus' text format (0.0.4).
func (m *Metrics) Text() []byte {
	w := &writer{before: m.before}
	for _, g := range gauges {
		w.family(g.name, "gauge", g.help)
		for _, f := range m.atoms {
			w.gauge(g, f)
		}
	}
	w.counters(m.atoms)
	w.family(notRun, "counter", "Jobs that were not run: trouble with the lock directory, or refused options.")
	w.counter(notRun, "", float64(m.notRun))
	w.family(countedUntil, "gauge", "Events up to this time are in the counters.")
	w.sample(countedUntil, "", seconds(m.until))
	w.family("adlock_damaged_lines", "gauge", "Lines of the runlog that cannot be read.")
	w.sample("adlock_damaged_lines", "", float64(m.Damaged))
	if len(m.Users) > 0 {
		w.users(m.Users)
	}
	return w.text
}

func (w *writer) users(users []User) {
	w.family("adlock_user_read", "gauge", "1 if all of the user's lock directory and runlog could be read, else 0.")
	for _, u := range users {
		w.sample("adlock_user_read", userLabel(u.Name), truth(u.Read))
	}
	w.family("adlock_user_omitted_atoms", "gauge", "Atoms of the user that have no series, as there are too many.")
	for _, u := range users {
		w.sample("adlock_user_omitted_atoms", userLabel(u.Name), float64(u.Omitted))
	}
	w.family(userCountedUntil, "gauge", "Events of a user who could not be read up to this time are in the counters.")
	for _, u := range users {
		if !u.until.IsZero() {
			w.sample(userCountedUntil, userLabel(u.Name), seconds(u.until))
		}
	}
}

type writer struct {
	text   []byte
	before Values
}

func (w *writer) family(name, kind, help string) {
	w.text = fmt.Appendf(w.text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
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

func (w *writer) counter(name, labels string, more float64) {
	w.sample(name, labels, w.before[series(name, labels)]+more)
}

type gauge struct {
	name, help string
	kept       bool // an unknown value is written as it was the last time, and not left out
	value      func(f *figures) (value float64, known bool)
}

var gauges = [...]gauge{
	{lastSuccess, "When a run last succeeded.", true, func(f *figures) (float64, bool) {
		return seconds(f.success), !f.success.IsZero()
	}},
	{"adlock_running_since_timestamp_seconds", "When the run that holds the lock began; absent where nothing runs.", false, func(f *figures) (float64, bool) {
		return seconds(f.since), !f.since.IsZero()
	}},
	{"adlock_paused_since_timestamp_seconds", "When the pause of the atom or of its host began; absent where there is none.", false, func(f *figures) (float64, bool) {
		return seconds(f.paused), !f.paused.IsZero()
	}},
	{"adlock_overdue", "1 while the run that holds the lock is past its limit or its notice, else 0.", false, func(f *figures) (float64, bool) {
		return truth(f.overdue), true
	}},
	{stuck, "1 while the run that holds the lock has expired and could not be ended, else 0.", false, func(f *figures) (float64, bool) {
		return truth(f.stuck), true
	}},
	{interval, "The usual time from one start to the next, nights and weekends without a start included.", true, func(f *figures) (float64, bool) {
		usual, known := usualInterval(f.starts.Durations, f.apart)
		return usual.Seconds(), known
	}},
	{failures, "Runs since the last success that failed, were ended by force, or came to no end; a dead owner's once the next start finds it.", false, func(f *figures) (float64, bool) {
		return float64(f.failed), true
	}},
	{denials, "Requests denied since the last run began because all slots were taken.", false, func(f *figures) (float64, bool) {
		return float64(f.denied), true
	}},
}

func (w *writer) gauge(g gauge, f *figures) {
	value, known := g.value(f)
	if !known && g.kept {
		value, known = w.before[series(g.name, f.labels)]
	}
	if known {
		w.sample(g.name, f.labels, value)
	}
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// counters also writes outcomes that never occurred, as a series that begins with 1 shows no increase.
func (w *writer) counters(atoms []*figures) {
	w.family("adlock_runs_total", "counter", "Runs by how they ended; failure: also those whose owner died, once the next start finds that, or whose command was not there.")
	for _, f := range atoms {
		for i, o := range outcomes {
			w.counter("adlock_runs_total", f.labels+`,outcome="`+o.label+`"`, float64(f.outcomes[i]))
		}
	}
	w.family(denied, "counter", "Requests denied though the atom was due: busy, full or stuck.")
	for _, f := range atoms {
		w.counter(denied, f.labels, float64(f.denials))
	}
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
