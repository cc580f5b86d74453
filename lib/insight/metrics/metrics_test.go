package metrics

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"adlock/lib/atom"
	"adlock/lib/limit"
	"adlock/lib/runlog"
	"adlock/test/support/must"
	"adlock/test/support/need"
	"adlock/test/support/story"
)

const labelsOfX = `program="p",host="dax",operator="run",operand="x"`

func collect(t *testing.T, s *story.Story, until time.Duration, before Values) *Metrics {
	t.Helper()
	return collectWith(t, s, until, Options{Before: before})
}

func collectWith(t *testing.T, s *story.Story, until time.Duration, o Options) *Metrics {
	t.Helper()
	o.Now = story.Midnight.Add(until)
	o.Until = o.Now
	return must.Get(Collect(s.Events(), o))(t)
}

// read returns the values that the next collection reads from the text of m.
func read(t *testing.T, m *Metrics) Values {
	t.Helper()
	file := filepath.Join(t.TempDir(), "adlock.prom")
	must.Do(t, os.WriteFile(file, m.Text(), 0o600))
	return must.Get(ReadValues(file))(t)
}

func TestTheMetricsOfAnAtomMatchItsHistory(t *testing.T) {
	s := &story.Story{}
	j := s.Job("p run x", 15*time.Minute, limit.Never)
	j.Run(0, 10*time.Second, 0)
	j.Run(20*time.Minute, 90*time.Second, 1)
	j.Hang(time.Hour, 10*time.Minute, 7)
	j.Deny(80*time.Minute, "busy", 3, time.Second)
	j.Deny(80*time.Minute, "too-soon", 2, time.Second)
	j.Deny(80*time.Minute, "full", 4, time.Second)
	x := atom.Atom{Program: "p", Host: "dax", Operator: "run", Operand: "x", Command: "which the runlog lacks"}
	held := []Lock{{Atom: x, Since: story.Midnight.Add(90 * time.Minute)}}
	got := read(t, collectWith(t, s, 2*time.Hour, Options{Locks: held}))
	midnight := float64(story.Midnight.Unix())
	for series, want := range map[string]float64{
		`adlock_last_success_timestamp_seconds{` + labelsOfX + `}`:  midnight + 10,
		`adlock_running_since_timestamp_seconds{` + labelsOfX + `}`: midnight + 90*60,
		`adlock_overdue{` + labelsOfX + `}`:                         0,
		`adlock_stuck{` + labelsOfX + `}`:                           0,
		`adlock_failures_in_a_row{` + labelsOfX + `}`:               2,
		`adlock_denials_in_a_row{` + labelsOfX + `}`:                4,
		`adlock_denials_total{` + labelsOfX + `}`:                   7,
		`adlock_runs_total{` + labelsOfX + `,outcome="success"}`:    1,
		`adlock_runs_total{` + labelsOfX + `,outcome="failure"}`:    1,
		`adlock_runs_total{` + labelsOfX + `,outcome="ended"}`:      1,
		`adlock_not_run_total`:                                      0,
		`adlock_counted_until_timestamp_seconds`:                    midnight + 2*3600,
	} {
		if value, there := got[series]; !there || value != want {
			t.Errorf("%s is %v (%v), want %v", series, value, there, want)
		}
	}
}

func TestCountersNeverFallThoughTheRunlogLosesLines(t *testing.T) {
	whole := story.Day()
	want := read(t, collect(t, whole, 24*time.Hour, nil))
	locks := locksOfTheDay(0)
	var before Values
	for hour := time.Duration(1); hour <= 24; hour++ {
		m := must.Get(Collect(part(whole, hour*time.Hour-4*time.Hour, hour*time.Hour), Options{
			Now: story.Midnight.Add(hour * time.Hour), Until: story.Midnight.Add(hour * time.Hour), Before: before, Locks: locks,
		}))(t)
		now := read(t, m)
		for series, value := range before {
			if strings.Contains(series, "_total{") && now[series] < value {
				t.Fatalf("hour %d: %s fell from %v to %v", hour, series, value, now[series])
			}
		}
		before = now
	}
	for _, series := range []string{"adlock_denials_total", "adlock_runs_total", "adlock_last_success_timestamp_seconds"} {
		for key, value := range want {
			if strings.HasPrefix(key, series+"{") && before[key] != value {
				t.Errorf("%s is %v, want %v", key, before[key], value)
			}
		}
	}
}

// locksOfTheDay are locks of all atoms of story.Day.
func locksOfTheDay(since time.Duration) (locks []Lock) {
	for _, text := range []string{"backup run /srv/data", "rsync copy mirror <a&b>", "agent poll status", "render run frame 7"} {
		parts := strings.SplitN(text, " ", 3)
		locks = append(locks, Lock{
			Atom:  atom.Atom{Program: parts[0], Host: story.Host, Operator: parts[1], Operand: parts[2]},
			Since: story.Midnight.Add(since),
		})
	}
	return locks
}

// part yields the events of a story between two times, as a bounded runlog has them.
func part(s *story.Story, from, until time.Duration) func(func(runlog.Event, error) bool) {
	return func(yield func(runlog.Event, error) bool) {
		for e := range s.Events() {
			if at := e.Time.Sub(story.Midnight); at >= from && at <= until && !yield(e, nil) {
				return
			}
		}
	}
}

func TestAUsersCountersAreKeptWhileItsFilesAreUnreadable(t *testing.T) {
	whole := story.Day()
	want := read(t, collectWith(t, whole, 24*time.Hour, Options{User: "u"}))
	before := read(t, collectWith(t, whole, 12*time.Hour, Options{User: "u"}))
	for hour := time.Duration(13); hour < 24; hour++ {
		o := Options{User: "u", Before: before, Until: story.Midnight.Add(hour * time.Hour)}
		all := None(o)
		all.Add(Kept(o))
		now := read(t, all)
		for series, value := range before {
			if (strings.Contains(series, "_total{") || strings.Contains(series, "_in_a_row{")) && now[series] != value {
				t.Fatalf("hour %d: %s was %v and is %v", hour, series, value, now[series])
			}
		}
		before = now
	}
	o := Options{User: "u", Before: before, Now: story.Midnight.Add(24 * time.Hour), Until: story.Midnight.Add(24 * time.Hour)}
	all := None(o)
	all.Add(must.Get(Collect(whole.Events(), o))(t))
	if got := read(t, all); !maps.Equal(got, want) {
		t.Errorf("%v\n%v", got, want)
	}
}

func TestCollectingMetricsAgainCountsNoEventTwice(t *testing.T) {
	s := story.Day()
	first := read(t, collect(t, s, 24*time.Hour, nil))
	if second := read(t, collect(t, s, 24*time.Hour, first)); !maps.Equal(first, second) {
		t.Error("the figures differ")
	}
	const backup = `program="backup",host="dax",operator="run",operand="/srv/data"`
	if back := read(t, collect(t, s, 12*time.Hour, first)); back[`adlock_runs_total{`+backup+`,outcome="success"}`] != 20 {
		t.Error("a clock that was set back changes what was counted")
	}
}

func TestDamagedSamplesAreSkipped(t *testing.T) {
	file := filepath.Join(t.TempDir(), "adlock.prom")
	must.Do(t, os.WriteFile(file, []byte("adlock_events_total{} 1e\n\x00\x00\nadlock_x 5\nother 7\nadlock_y NaN\n"), 0o600))
	values, err := ReadValues(file)
	if err != nil || len(values) != 1 || values["adlock_x"] != 5 {
		t.Errorf("%v, %v", values, err)
	}
	if values, err := ReadValues(filepath.Join(t.TempDir(), "none")); values != nil || err != nil {
		t.Errorf("%v, %v", values, err)
	}
}

func TestLabelsOfMetricsArePrintableUTF8(t *testing.T) {
	s := &story.Story{}
	s.Job("p run \x1b[2J\xff\u009b\u202e\\\"\r\né", 0, time.Hour).Run(0, time.Second, 0)
	text := string(collect(t, s, time.Hour, nil).Text())
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(c rune) bool { return c != '\n' && !strconv.IsPrint(c) }) {
		t.Errorf("%q", text)
	}
	if want := `operand="\\x1b[2J\\xff\\xc2\\x9b\\xe2\\x80\\xae\\\\\"\\x0d\\x0aé"`; !strings.Contains(text, want) {
		t.Errorf("%s\nhas no %s", text, want)
	}
}

func TestAnAtomHasTwelveSeriesAtMost(t *testing.T) {
	locks := locksOfTheDay(23 * time.Hour)
	m := collectWith(t, story.Day(), 24*time.Hour, Options{Locks: locks})
	of := map[string]int{}
	for series := range read(t, m) {
		if _, labels, inAtom := strings.Cut(series, "{"); inAtom {
			labels, _, _ = strings.Cut(labels, ",outcome=")
			of[strings.TrimSuffix(labels, "}")]++
		}
	}
	for labels, n := range of {
		if n > 12 {
			t.Errorf("%d series of %s", n, labels)
		}
	}
	if len(of) != len(locks) {
		t.Errorf("%d atoms, want %d", len(of), len(locks))
	}
}

func TestFailuresAndDenialsInARowContinueFromTheFile(t *testing.T) {
	s := &story.Story{}
	j := s.Job("p run x", 0, limit.Never)
	j.Run(0, time.Second, 1)
	j.Run(time.Hour, time.Second, 1)
	j.Deny(2*time.Hour, "full", 3, time.Second)
	before := read(t, collect(t, s, 3*time.Hour, nil))
	later := &story.Story{}
	j = later.Job("p run x", 0, limit.Never)
	j.Deny(4*time.Hour, "full", 2, time.Second)
	got := read(t, collect(t, later, 5*time.Hour, before))
	failures, denials := got[`adlock_failures_in_a_row{`+labelsOfX+`}`], got[`adlock_denials_in_a_row{`+labelsOfX+`}`]
	if failures != 2 || denials != 5 {
		t.Errorf("%v failures, %v denials in a row", failures, denials)
	}
}

func TestOfACutRunlogTheGapOfTwoSuccessesIsTheInterval(t *testing.T) {
	var before Values
	for _, c := range []struct{ at, from, want time.Duration }{ // each time the last three hours are read
		{0, 0, 0}, {9 * time.Hour, 6 * time.Hour, 9 * time.Hour}, {10 * time.Hour, 7 * time.Hour, 9 * time.Hour}, {14 * time.Hour, 11 * time.Hour, 9 * time.Hour},
	} {
		s := &story.Story{}
		s.Job("p run x", 0, limit.Never).Run(c.at, time.Second, 0)
		before = read(t, collectWith(t, s, c.at+time.Minute, Options{Before: before, Cut: story.Midnight.Add(c.from)}))
		if got := before[`adlock_run_interval_seconds{`+labelsOfX+`}`]; got != c.want.Seconds() {
			t.Errorf("%v: %v, want %v", c.at, got, c.want.Seconds())
		}
	}
}

func TestMetricsLeaveOutRetiredAtomsAndOldMissingCommands(t *testing.T) {
	there := func(atom.Atom) bool { return false }
	taken, missing := runlog.Event{Kind: runlog.Acquire, Token: "a"}, runlog.Event{Kind: runlog.Missing, Status: runlog.Some(127)}
	for claim, c := range map[string]struct {
		events []runlog.Event
		days   int
		shown  bool
	}{
		"taken in a directory":                {[]runlog.Event{taken}, 1, false},
		"in a store":                          {[]runlog.Event{{Kind: runlog.Acquire, Token: "a", Store: "etcd://a/b"}}, 1, true},
		"its start is lost":                   {[]runlog.Event{{Kind: runlog.Release, Token: "a"}}, 1, false},
		"only a denial is left":               {[]runlog.Event{{Kind: runlog.Deny, Verdict: "too-soon"}}, 1, false},
		"denied a slot, and never run":        {[]runlog.Event{{Kind: runlog.Deny, Verdict: "full"}}, 1, true},
		"a command that was never there":      {[]runlog.Event{missing}, 7, true},
		"a week later":                        {[]runlog.Event{missing}, 9, false},
		"retired, and the command is missing": {[]runlog.Event{taken, missing}, 1, true},
	} {
		s := &story.Story{}
		for n, e := range c.events {
			s.Job("p run x", 0, limit.Never).Add(time.Duration(n)*time.Minute, e)
		}
		m := collectWith(t, s, time.Duration(c.days)*24*time.Hour, Options{There: there})
		if shown := strings.Contains(string(m.Text()), labelsOfX); shown != c.shown {
			t.Errorf("%s: shown is %v", claim, shown)
		}
	}
}

// This machine's runlog has no later event of the run, as another machine acquires the atom next.
func TestALostRunOfAStoreCountsAsOneFailure(t *testing.T) {
	const store = "etcd://a:1/b"
	for _, ended := range []bool{false, true} {
		s := &story.Story{}
		j := s.Job("p run x", 0, limit.Never)
		j.Add(0, runlog.Event{Kind: runlog.Acquire, Store: store, PID: 7, Token: "t"})
		j.Add(time.Minute, runlog.Event{Kind: runlog.Lost, Store: store, PID: 7, Token: "t"})
		if ended {
			j.Add(59*time.Minute, runlog.Event{Kind: runlog.Takeover, Store: store, PID: 8, Owner: 7, OwnerToken: "t", Age: runlog.Some(time.Minute)})
		}
		got := read(t, collect(t, s, time.Hour, nil))
		if failed, row := got[`adlock_runs_total{`+labelsOfX+`,outcome="failure"}`], got[`adlock_failures_in_a_row{`+labelsOfX+`}`]; failed != 1 || row != 1 {
			t.Errorf("ended %v: %v failures, %v in a row", ended, failed, row)
		}
	}
}

func TestPromtoolAcceptsTheMetrics(t *testing.T) {
	need.Tools(t, "promtool")
	s := story.Day()
	for _, odd := range []string{"a\"b\\c\nd } 5", "\xff\xfe", "\xff\xfd"} { // names that could break the text
		s.Job("p run "+odd, 0, limit.Never).Run(0, time.Second, 0)
	}
	command := exec.Command("promtool", "check", "metrics")
	command.Stdin = bytes.NewReader(collect(t, s, 24*time.Hour, nil).Text())
	if output, err := command.CombinedOutput(); err != nil || len(output) > 0 {
		t.Errorf("%v\n%s", err, output)
	}
}
