package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/insight/metrics"
	"adlock/lib/limit"
	"adlock/lib/runlog"
	"adlock/test/support/need"
	"adlock/test/support/story"
)

// trial is a history of jobs, and the alerts that it raises. promtool evaluates the rules on the
// metrics that the history has at each minute.
type trial struct {
	runs   []runs
	more   func(j *story.Job) // what else happens; nil: nothing
	lasts  time.Duration
	step   time.Duration                         // from one adlock metrics to the next; 0: a minute
	locks  func(at time.Duration) []metrics.Lock // what the lock directory has; nil: no lock is held
	there  func(at time.Duration) bool           // the atom has a last lock; nil: always
	user   string                                // whose the atom is; "": without --all-users
	unread func(at time.Duration) bool           // that user's directory cannot be read; nil: it can
	omits  int                                   // that many of the user's atoms have no series
	stops  time.Duration                         // adlock metrics is not run after that; 0: it always is
	gone   bool                                  // its file vanishes then
	quiet  times                                 // when no alert fires
	fires  fires                                 // when alerts fire, and which
}

type times []time.Duration

// fires are the summaries of the alerts that fire at a time, by their names.
type fires map[time.Duration]map[string]string

// runs begin at from and after each interval until to, last 20 seconds, or half of a shorter interval, and exit
// with status.
type runs struct {
	every, from, to time.Duration
	status          int
}

const ofX, ofXOfEve = "p run x on web1 ", "p run x of eve on web1 "

func x() atom.Atom { return atom.Atom{Program: "p", Host: story.Host, Operator: "run", Operand: "x"} }

// held is the lock of a run that lasts until to and is overdue before its end.
func held(from, overdue, to time.Duration) func(at time.Duration) []metrics.Lock {
	return func(at time.Duration) []metrics.Lock {
		l := metrics.Lock{Atom: x()}
		if at >= from && at < to {
			l.Since, l.Overdue = story.Midnight.Add(from), at >= overdue
		}
		return []metrics.Lock{l}
	}
}

// pausedFrom is the lock of an atom that is paused until to.
func pausedFrom(from, to time.Duration) func(at time.Duration) []metrics.Lock {
	return func(at time.Duration) []metrics.Lock {
		l := metrics.Lock{Atom: x()}
		if at >= from && at < to {
			l.Paused = story.Midnight.Add(from)
		}
		return []metrics.Lock{l}
	}
}

const second, minute, hour, day, ten = time.Second, time.Minute, time.Hour, 24 * time.Hour, 10 * time.Minute

var trials = map[string]trial{
	"all is well": {runs: []runs{{ten, 0, 3 * hour, 0}}, lasts: 3 * hour, quiet: times{hour, 2 * hour, 3*hour - minute}},
	"each minute": {runs: []runs{{minute, 0, 2 * hour, 0}}, lasts: 2 * hour,
		quiet: times{hour, 90 * minute, 2*hour - minute}},
	"a job that only fails": {
		runs: []runs{{ten, 0, 4 * hour, 1}}, lasts: 4 * hour, quiet: times{12 * minute},
		fires: fires{
			hour:     {"AdlockFails": ofX + "has failed 6 times in a row"},
			3 * hour: {"AdlockFails": ofX + "has failed 18 times in a row"},
		},
	},
	"one failure": {
		runs:  []runs{{ten, 0, 2 * hour, 0}, {ten, 2 * hour, 2*hour + ten, 1}, {ten, 2*hour + ten, 4 * hour, 0}},
		lasts: 4 * hour,
		quiet: times{2*hour + 6*minute, 2*hour + 9*minute, 4*hour - minute},
	},
	"no success for twice its usual interval, then recovered": {
		runs: []runs{{ten, 0, 2*hour + ten, 0}, {ten, 3 * hour, 5 * hour, 0}}, lasts: 5 * hour,
		quiet: times{2*hour + 25*minute, 3*hour + 2*minute, 5*hour - minute},
		fires: fires{
			2*hour + 30*minute: {"AdlockNoSuccess": ofX + "has not succeeded for 29m 40s, more than two of its intervals"},
			3 * hour:           {"AdlockNoSuccess": ofX + "has not succeeded for 59m 40s, more than two of its intervals"},
		},
	},
	"each ten minutes by day, and none by night": { // the first three nights teach
		runs: days(5, runs{ten, 6 * hour, 22 * hour, 0}), lasts: 5 * day, step: 4 * minute,
		quiet: times{84 * hour, 96 * hour, 101 * hour},
	},
	"overdue, then done": {
		runs: []runs{{ten, 0, 2 * hour, 0}}, lasts: 3 * hour,
		more: func(j *story.Job) {
			j.Run(2*hour, 18*minute, 0)
			j.Deny(2*hour+ten, "busy", 1, ten)
		},
		locks: held(2*hour, 2*hour+5*minute, 2*hour+18*minute), quiet: times{2*hour + 9*minute, 2*hour + 20*minute},
		fires: fires{2*hour + 12*minute: {"AdlockOverdue": ofX + "has been running for 12m 0s, longer than it should"}},
	},
	"busy again and again": {
		more: func(j *story.Job) {
			for n := range time.Duration(8) {
				j.Run(n*30*minute, 25*minute, 0)
				j.Deny(n*30*minute+minute, "busy", 24, minute)
			}
		}, lasts: 4 * hour, quiet: times{hour + 24*minute, 3*hour + 24*minute},
	},
	"never a slot": {
		runs: []runs{{ten, 0, ten, 0}, {ten, 45 * minute, hour, 0}}, lasts: hour,
		more: func(j *story.Job) { j.Deny(ten, "full", 30, minute) }, quiet: times{18 * minute, 50 * minute},
		fires: fires{30 * minute: {"AdlockStarves": ofX + "starves: denied a slot 21 times in a row"}},
	},
	"stuck until it is cleared": {
		more: func(j *story.Job) { j.Open(0); j.Deny(30*minute, "stuck", 2, 2*hour) }, lasts: 4 * hour,
		locks: held(0, 20*minute, 3*hour), quiet: times{22 * minute, 3*hour + minute},
		fires: fires{2 * hour: {
			"AdlockStuck":   ofX + "is stuck: its owner has expired and cannot be ended",
			"AdlockOverdue": ofX + "has been running for 2h 0m 0s, longer than it should",
		}},
	},
	"ended by force, once and then twice": {
		runs:  []runs{{ten, 0, hour, 0}, {ten, hour + ten + second, 2 * hour, 0}, {ten, 2*hour + ten + second, 9 * hour, 0}},
		more:  func(j *story.Job) { j.Hang(hour, ten, 7); j.Hang(2*hour, ten, 7) },
		lasts: 9 * hour, step: 4 * minute, quiet: times{hour + 16*minute, 9*hour - 4*minute},
		fires: fires{2*hour + 16*minute: {"AdlockEndedByForce": ofX + "is being ended by force (2 times in 6 hours)"}},
	},
	"paused, and resumed": {
		runs:  []runs{{ten, 0, 2 * hour, 0}, {ten, 5 * hour, 6 * hour, 0}},
		lasts: 6 * hour, locks: pausedFrom(2*hour, 5*hour-ten),
		quiet: times{3 * hour, 5*hour - 11*minute, 5*hour - minute, 6*hour - minute},
	},
	"a job that fails is paused": {
		runs: []runs{{ten, 0, 2 * hour, 1}}, lasts: 3 * hour, locks: pausedFrom(2*hour, 150*minute),
		quiet: times{2*hour + 5*minute},
		fires: fires{
			2*hour - minute: {"AdlockFails": ofX + "has failed 12 times in a row"},
			3*hour - minute: {"AdlockFails": ofX + "has failed 12 times in a row"},
		},
	},
	"a pause that is forgotten": {
		runs: []runs{{ten, 0, 2 * hour, 0}}, lasts: 28 * hour, step: 4 * minute, locks: pausedFrom(2*hour, 28*hour),
		quiet: times{25 * hour}, fires: fires{27 * hour: {"AdlockPauseForgotten": "jobs on web1 have been paused for 1d 1h 0m 0s"}},
	},
	"not run, as the lock directory cannot be used": {
		runs: []runs{{ten, 0, 2 * hour, 0}, {ten, 2*hour + ten, 4 * hour, 0}}, lasts: 4 * hour,
		more: func(j *story.Job) {
			j.Add(2*hour, runlog.Event{Kind: runlog.NotRun, PID: 7, Status: runlog.Some(74)})
		}, quiet: times{2*hour - minute, 3*hour + ten},
		fires: fires{2*hour + 5*minute: {"AdlockNotRun": "jobs on web1 are not run: their lock directory cannot be used, or their options are refused"}},
	},
	"retired": {
		runs: []runs{{ten, 0, 2 * hour, 1}}, lasts: 4 * hour, there: func(at time.Duration) bool { return at < 3*hour },
		quiet: times{3 * hour, 4*hour - minute},
		fires: fires{3*hour - minute: {"AdlockFails": ofX + "has failed 12 times in a row"}},
	},
	"a job of another user, who is then not read": {
		runs: []runs{{ten, 0, 4 * hour, 1}}, lasts: 4 * hour, user: "eve",
		unread: func(at time.Duration) bool { return at >= 3*hour }, quiet: times{3*hour + 14*minute},
		fires: fires{
			hour:            {"AdlockFails": ofXOfEve + "has failed 6 times in a row"},
			4*hour - minute: {"AdlockUserUnread": "jobs of eve on web1 are not all watched: locks or a runlog cannot be read"},
		},
	},
	"too many atoms of a user": {
		runs: []runs{{ten, 0, hour, 0}}, lasts: hour, user: "eve", omits: 11, quiet: times{14 * minute},
		fires: fires{hour - minute: {"AdlockUserOmitted": "11 jobs of eve on web1 are not watched: there are more than 200"}},
	},
	"two runs by hand, three seconds apart": {
		runs: []runs{{3 * second, 0, 6 * second, 0}}, lasts: 10 * hour, step: 4 * minute,
		quiet: times{hour, 5 * hour, 10*hour - 4*minute},
	},
	"ten runs by hand, and then once a day": {
		runs: []runs{{minute, 9 * hour, 9*hour + ten, 0}, {day, 15 * hour, 80 * hour, 0}}, lasts: 80 * hour, step: 4 * minute,
		quiet: times{10 * hour, 14 * hour, 30 * hour, 60 * hour, 80*hour - 4*minute},
	},
	"no figures": {
		runs: []runs{{ten, 0, 5 * hour, 0}}, lasts: 5 * hour, stops: 3 * hour, quiet: times{3*hour + 15*minute},
		fires: fires{4 * hour: {"AdlockMetricsStale": "adlock metrics has not been written for 1h 0m 0s on web1"}},
	},
	"the file of the figures is gone": {
		runs: []runs{{ten, 0, 3 * hour, 0}}, lasts: 5 * hour, stops: 3 * hour, gone: true, quiet: times{3*hour + 15*minute},
		fires: fires{4 * hour: {"AdlockMetricsStale": "adlock metrics has not been written for 1h 0m 0s on web1"}},
	},
}

func days(n time.Duration, r runs) (all []runs) {
	for at := range n {
		all = append(all, runs{r.every, at*day + r.from, at*day + r.to, r.status})
	}
	return all
}

func (c *trial) every() time.Duration { return cmp.Or(c.step, minute) }

// series are the metrics of each step of a trial, by their labels, in the notation of promtool: its
// clock begins at zero.
func (c *trial) series(t *testing.T) map[string][]string {
	t.Helper()
	s := &story.Story{}
	j := s.Job("p run x", 0, limit.Never)
	for _, r := range c.runs {
		for at := r.from; at < r.to; at += r.every {
			j.Run(at, min(20*second, r.every/2), r.status)
		}
	}
	if c.more != nil {
		c.more(j)
	}
	all, before := map[string][]string{}, metrics.Values(nil)
	file := filepath.Join(t.TempDir(), "adlock.prom")
	steps := int(c.lasts / c.every())
	for n := range steps {
		now := time.Duration(n) * c.every()
		if c.stops == 0 || now <= c.stops {
			before = c.collect(t, s, now, before, file)
		} else if c.gone {
			before = nil
		}
		for key, value := range before {
			if name, _, _ := strings.Cut(key, "{"); strings.HasSuffix(name, "_timestamp_seconds") {
				value -= float64(story.Midnight.Unix())
			}
			if all[key] == nil {
				all[key] = slices.Repeat([]string{"stale"}, steps)
			}
			all[key][n] = strconv.FormatFloat(value, 'f', -1, 64)
		}
	}
	return all
}

// collect is one run of adlock metrics --output file.
func (c *trial) collect(t *testing.T, s *story.Story, now time.Duration, before metrics.Values, file string) metrics.Values {
	t.Helper()
	until := story.Midnight.Add(now)
	o := metrics.Options{Now: until, Until: until, Before: before, User: c.user, There: func(atom.Atom) bool { return c.there == nil || c.there(now) }}
	if c.locks != nil {
		o.Locks = c.locks(now)
	}
	m, err := metrics.Collect(func(yield func(runlog.Event, error) bool) {
		for e := range s.Events() {
			if !e.Time.After(until) && !yield(e, nil) {
				return
			}
		}
	}, o)
	must(t, err)
	if c.unread != nil && c.unread(now) {
		m = metrics.None(o)
		m.Add(&metrics.Metrics{Users: []metrics.User{{Name: c.user}}})
	}
	if c.user != "" {
		m.Users[0].Omitted = c.omits
	}
	must(t, os.WriteFile(file, m.Text(), 0o600))
	values, err := metrics.ReadValues(file)
	must(t, err)
	return values
}

// object is JSON, which is YAML as well.
type object = map[string]any

// promtoolTest is a trial in the format of promtool.
func (c *trial) promtoolTest(t *testing.T, name string, alerts []rule) object {
	t.Helper()
	var input, wanted []object
	for key, values := range c.series(t) {
		if !strings.Contains(key, "{") {
			key += "{}"
		}
		key = strings.Replace(key, "{", `{instance="web1",job="node",`, 1)
		input = append(input, object{"series": strings.Replace(key, ",}", "}", 1), "values": strings.Join(values, " ")})
	}
	expect := maps.Clone(c.fires)
	if expect == nil {
		expect = fires{}
	}
	for _, when := range c.quiet {
		expect[when] = nil
	}
	for when, firing := range expect {
		for _, a := range alerts {
			test := object{"eval_time": strconv.Itoa(int(when/second)) + "s", "alertname": a.Alert}
			if summary, fires := firing[a.Alert]; fires {
				test["exp_alerts"] = []object{a.expected(summary)}
			}
			wanted = append(wanted, test)
		}
	}
	return object{"name": name, "interval": limit.Format(c.every()), "input_series": input, "alert_rule_test": wanted}
}

// rule is what the file of rules says of one alert.
type rule struct{ Alert, Severity, Description string }

// shippedRules parses the part of YAML that the file of rules uses.
func shippedRules(t *testing.T) (all []rule) {
	t.Helper()
	for line := range strings.Lines(read(t, "adlock-alerts.yml")) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch value = strings.Trim(value, "'"); key {
		case "- alert":
			all = append(all, rule{Alert: value})
		case "severity":
			all[len(all)-1].Severity = value
		case "description":
			all[len(all)-1].Description = value
		}
	}
	return all
}

const ofAllUsers = "{{ with $labels.user }} --all-users{{ end }}"

func (a *rule) expected(summary string) object {
	labels := map[string]string{"instance": "web1", "job": "node", "severity": a.Severity}
	if strings.HasPrefix(summary, "p run x ") {
		labels["program"], labels["host"], labels["operator"], labels["operand"] = "p", story.Host, "run", "x"
	}
	all := ""
	if strings.Contains(summary, " of eve ") {
		labels["user"], all = "eve", " --all-users"
	}
	if a.Alert == "AdlockEndedByForce" {
		labels["outcome"] = "ended"
	}
	annotations := map[string]string{"summary": summary}
	if a.Description != "" {
		annotations["description"] = strings.ReplaceAll(a.Description, ofAllUsers, all)
	}
	return object{"exp_labels": labels, "exp_annotations": annotations}
}

func TestEachAlertFiresOnlyDuringItsTrouble(t *testing.T) {
	t.Parallel()
	need.Tools(t, "promtool")
	rules := shippedRules(t)
	path, err := filepath.Abs("adlock-alerts.yml")
	must(t, err)
	tests := map[time.Duration][]object{}
	fired := map[string]bool{}
	for name, c := range trials {
		tests[c.every()] = append(tests[c.every()], c.promtoolTest(t, name, rules))
		for _, alerts := range c.fires {
			for alert := range alerts {
				fired[alert] = true
			}
		}
	}
	for _, r := range rules {
		if strings.Contains(strings.ReplaceAll(r.Description, ofAllUsers, ""), "{{") {
			t.Error(r.Alert, "has a command for a shell with words of a user in it")
		}
		if !fired[r.Alert] {
			t.Error(r.Alert, "fires in no trial")
		}
	}
	promtool(t, "check", "rules", path)
	for step, tests := range tests {
		text, err := json.Marshal(object{"rule_files": []string{path}, "evaluation_interval": limit.Format(step), "tests": tests})
		must(t, err)
		file := filepath.Join(t.TempDir(), "trials.yml")
		must(t, os.WriteFile(file, text, 0o600))
		promtool(t, "test", "rules", file)
	}
}

func promtool(t *testing.T, args ...string) {
	t.Helper()
	output, err := exec.Command("promtool", args...).CombinedOutput()
	if err != nil || bytes.Contains(output, []byte("FAILED")) {
		t.Errorf("promtool %q: %v\n%s", args, err, output)
	}
}
