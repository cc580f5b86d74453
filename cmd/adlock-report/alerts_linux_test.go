package main

import (
	"bytes"
	"cmp"
	"encoding/json"
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
	story  func(s *story.Story)
	lasts  time.Duration
	step   time.Duration                           // from one adlock metrics to the next; 0: a minute
	locks  func(at time.Duration) []metrics.Lock   // what the lock directory has; nil: no lock is held
	there  func(at time.Duration) bool             // the atom has a last lock; nil: always
	user   string                                  // whose the atom is; "": without --all-users
	unread func(at time.Duration) bool             // that user's directory cannot be read; nil: it can
	stops  time.Duration                           // adlock metrics is not run after that; 0: it always is
	expect map[time.Duration]map[string]annotation // each alert that fires at that time
}

// annotation is the summary of an alert.
type annotation = string

const ofX, ofXOfEve = "p run x on web1 ", "p run x of eve on web1 "

func x() atom.Atom { return atom.Atom{Program: "p", Host: story.Host, Operator: "run", Operand: "x"} }

func job(s *story.Story) *story.Job { return s.Job("p run x", 0, limit.Never) }

// every adds a run at from and after each interval until to. Each exits with status.
func every(j *story.Job, interval, from, to time.Duration, status int) {
	for at := from; at < to; at += interval {
		j.Run(at, 20*time.Second, status)
	}
}

// held is the lock of a run, which lasts until to and is overdue before its end.
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

const ten = 10 * time.Minute

var trials = map[string]trial{
	"all is well": {
		story: func(s *story.Story) { every(job(s), ten, 0, 3*time.Hour, 0) }, lasts: 3 * time.Hour,
		expect: at(nothing, time.Hour, 2*time.Hour, 3*time.Hour-time.Minute),
	},
	"each minute": {
		story: func(s *story.Story) { every(job(s), time.Minute, 0, 2*time.Hour, 0) }, lasts: 2 * time.Hour,
		expect: at(nothing, time.Hour, 90*time.Minute, 2*time.Hour-time.Minute),
	},
	"a job that only fails": {
		story: func(s *story.Story) { every(job(s), ten, 0, 4*time.Hour, 1) }, lasts: 4 * time.Hour,
		expect: map[time.Duration]map[string]annotation{
			12 * time.Minute: nil,
			time.Hour:        {"AdlockFails": ofX + "has failed 6 times in a row"},
			3 * time.Hour:    {"AdlockFails": ofX + "has failed 18 times in a row"},
		},
	},
	"one failure": {
		story: func(s *story.Story) {
			j := job(s)
			every(j, ten, 0, 2*time.Hour, 0)
			j.Run(2*time.Hour, 20*time.Second, 1)
			every(j, ten, 2*time.Hour+ten, 4*time.Hour, 0)
		}, lasts: 4 * time.Hour,
		expect: at(nothing, 2*time.Hour+6*time.Minute, 2*time.Hour+9*time.Minute, 4*time.Hour-time.Minute),
	},
	"no success for twice its usual interval, then recovered": {
		story: func(s *story.Story) {
			j := job(s)
			every(j, ten, 0, 2*time.Hour+ten, 0)
			every(j, ten, 3*time.Hour, 5*time.Hour, 0)
		}, lasts: 5 * time.Hour,
		expect: map[time.Duration]map[string]annotation{
			2*time.Hour + 25*time.Minute: nil,
			2*time.Hour + 30*time.Minute: {"AdlockNoSuccess": ofX + "has not succeeded for 29m 40s, more than two of its intervals"},
			3 * time.Hour:                {"AdlockNoSuccess": ofX + "has not succeeded for 59m 40s, more than two of its intervals"},
			3*time.Hour + 2*time.Minute:  nil,
			5*time.Hour - time.Minute:    nil,
		},
	},
	"each ten minutes by day, and none by night": {
		story: func(s *story.Story) {
			j := job(s)
			for day := range time.Duration(5) {
				every(j, ten, day*24*time.Hour+6*time.Hour, day*24*time.Hour+22*time.Hour, 0)
			}
		}, lasts: 120 * time.Hour, step: 4 * time.Minute,
		expect: at(nothing, 84*time.Hour, 96*time.Hour, 101*time.Hour), // the first three nights teach
	},
	"overdue, then done": {
		story: func(s *story.Story) {
			j := job(s)
			every(j, ten, 0, 2*time.Hour, 0)
			j.Run(2*time.Hour, 18*time.Minute, 0)
			j.Deny(2*time.Hour+ten, "busy", 1, ten)
		},
		lasts: 3 * time.Hour, locks: held(2*time.Hour, 2*time.Hour+5*time.Minute, 2*time.Hour+18*time.Minute),
		expect: map[time.Duration]map[string]annotation{
			2*time.Hour + 9*time.Minute:  nil,
			2*time.Hour + 12*time.Minute: {"AdlockOverdue": ofX + "has been running for 12m 0s, longer than it should"},
			2*time.Hour + 20*time.Minute: nil,
		},
	},
	"busy again and again": {
		story: func(s *story.Story) {
			j := job(s)
			for n := range time.Duration(8) {
				j.Run(n*30*time.Minute, 25*time.Minute, 0)
				j.Deny(n*30*time.Minute+time.Minute, "busy", 24, time.Minute)
			}
		}, lasts: 4 * time.Hour,
		expect: at(nothing, time.Hour+24*time.Minute, 3*time.Hour+24*time.Minute),
	},
	"never a slot": {
		story: func(s *story.Story) {
			j := job(s)
			every(j, ten, 0, ten, 0)
			j.Deny(ten, "full", 30, time.Minute)
			every(j, ten, 45*time.Minute, time.Hour, 0)
		}, lasts: time.Hour,
		expect: map[time.Duration]map[string]annotation{
			18 * time.Minute: nil,
			30 * time.Minute: {"AdlockStarves": ofX + "starves: denied a slot 21 times in a row"},
			50 * time.Minute: nil,
		},
	},
	"stuck until it is cleared": {
		story: func(s *story.Story) {
			j := job(s)
			j.Open(0)
			j.Deny(30*time.Minute, "stuck", 2, 2*time.Hour)
		},
		lasts: 4 * time.Hour, locks: held(0, 20*time.Minute, 3*time.Hour),
		expect: map[time.Duration]map[string]annotation{
			22 * time.Minute: nil,
			2 * time.Hour: {
				"AdlockStuck":   ofX + "is stuck: its owner has expired and cannot be ended",
				"AdlockOverdue": ofX + "has been running for 2h 0m 0s, longer than it should",
			},
			3*time.Hour + time.Minute: nil,
		},
	},
	"ended by force, once and then twice": {
		story: func(s *story.Story) {
			j := job(s)
			every(j, ten, 0, time.Hour, 0)
			j.Hang(time.Hour, ten, 7)
			every(j, ten, time.Hour+ten+time.Second, 2*time.Hour, 0)
			j.Hang(2*time.Hour, ten, 7)
			every(j, ten, 2*time.Hour+ten+time.Second, 9*time.Hour, 0)
		}, lasts: 9 * time.Hour, step: 4 * time.Minute,
		expect: map[time.Duration]map[string]annotation{
			time.Hour + 16*time.Minute:   nil,
			2*time.Hour + 16*time.Minute: {"AdlockEndedByForce": ofX + "is being ended by force (2 times in 6 hours)"},
			9*time.Hour - 4*time.Minute:  nil,
		},
	},
	"paused, and resumed": {
		story: func(s *story.Story) {
			j := job(s)
			every(j, ten, 0, 2*time.Hour, 0)
			every(j, ten, 5*time.Hour, 6*time.Hour, 0)
		},
		lasts: 6 * time.Hour, locks: pausedFrom(2*time.Hour, 5*time.Hour-ten),
		expect: at(nothing, 3*time.Hour, 5*time.Hour-11*time.Minute, 5*time.Hour-time.Minute, 6*time.Hour-time.Minute),
	},
	"a job that fails is paused": {
		story: func(s *story.Story) { every(job(s), ten, 0, 2*time.Hour, 1) },
		lasts: 3 * time.Hour, locks: pausedFrom(2*time.Hour, 150*time.Minute),
		expect: map[time.Duration]map[string]annotation{
			2*time.Hour - time.Minute:   {"AdlockFails": ofX + "has failed 12 times in a row"},
			2*time.Hour + 5*time.Minute: nil,
			3*time.Hour - time.Minute:   {"AdlockFails": ofX + "has failed 12 times in a row"},
		},
	},
	"a pause that is forgotten": {
		story: func(s *story.Story) { every(job(s), ten, 0, 2*time.Hour, 0) },
		lasts: 28 * time.Hour, step: 4 * time.Minute, locks: pausedFrom(2*time.Hour, 28*time.Hour),
		expect: map[time.Duration]map[string]annotation{
			25 * time.Hour: nil,
			27 * time.Hour: {"AdlockPauseForgotten": "jobs on web1 have been paused for 1d 1h 0m 0s"},
		},
	},
	"not run, as the lock directory cannot be used": {
		story: func(s *story.Story) {
			j := job(s)
			every(j, ten, 0, 2*time.Hour, 0)
			j.Add(2*time.Hour, runlog.Event{Kind: runlog.NotRun, PID: 7, Status: runlog.Some(74)})
			every(j, ten, 2*time.Hour+ten, 4*time.Hour, 0)
		}, lasts: 4 * time.Hour,
		expect: map[time.Duration]map[string]annotation{
			2*time.Hour - time.Minute:   nil,
			2*time.Hour + 5*time.Minute: {"AdlockNotRun": "jobs on web1 are not run: their lock directory cannot be used"},
			3*time.Hour + ten:           nil,
		},
	},
	"retired": {
		story: func(s *story.Story) { every(job(s), ten, 0, 2*time.Hour, 1) }, lasts: 4 * time.Hour,
		there: func(at time.Duration) bool { return at < 3*time.Hour },
		expect: map[time.Duration]map[string]annotation{
			3*time.Hour - time.Minute: {"AdlockFails": ofX + "has failed 12 times in a row"},
			3 * time.Hour:             nil,
			4*time.Hour - time.Minute: nil,
		},
	},
	"a job of another user, who is then not read": {
		story: func(s *story.Story) { every(job(s), ten, 0, 4*time.Hour, 1) }, lasts: 4 * time.Hour, user: "eve",
		unread: func(at time.Duration) bool { return at >= 3*time.Hour },
		expect: map[time.Duration]map[string]annotation{
			time.Hour:                    {"AdlockFails": ofXOfEve + "has failed 6 times in a row"},
			3*time.Hour + 14*time.Minute: nil,
			4*time.Hour - time.Minute:    {"AdlockUserUnread": "jobs of eve on web1 are not all watched: locks or a runlog cannot be read"},
		},
	},
	"two runs by hand, three seconds apart": {
		story: func(s *story.Story) {
			j := job(s)
			j.Run(0, time.Second, 0)
			j.Run(3*time.Second, time.Second, 0)
		}, lasts: 10 * time.Hour, step: 4 * time.Minute,
		expect: at(nothing, time.Hour, 5*time.Hour, 10*time.Hour-4*time.Minute),
	},
	"ten runs by hand, and then once a day": {
		story: func(s *story.Story) {
			j := job(s)
			every(j, time.Minute, 9*time.Hour, 9*time.Hour+ten, 0)
			every(j, 24*time.Hour, 15*time.Hour, 80*time.Hour, 0)
		}, lasts: 80 * time.Hour, step: 4 * time.Minute,
		expect: at(nothing, 10*time.Hour, 14*time.Hour, 30*time.Hour, 60*time.Hour, 80*time.Hour-4*time.Minute),
	},
	"no figures": {
		story: func(s *story.Story) { every(job(s), ten, 0, 5*time.Hour, 0) }, lasts: 5 * time.Hour, stops: 3 * time.Hour,
		expect: map[time.Duration]map[string]annotation{
			3*time.Hour + 15*time.Minute: nil,
			4 * time.Hour:                {"AdlockMetricsStale": "adlock metrics has not been written for 1h 0m 0s on web1"},
		},
	},
}

var nothing map[string]annotation

func at(alerts map[string]annotation, times ...time.Duration) map[time.Duration]map[string]annotation {
	all := map[time.Duration]map[string]annotation{}
	for _, t := range times {
		all[t] = alerts
	}
	return all
}

func (c *trial) every() time.Duration { return cmp.Or(c.step, time.Minute) }

// series are the metrics of each step of a trial, by their labels, in the notation of promtool: its
// clock begins at zero.
func (c *trial) series(t *testing.T) map[string][]string {
	t.Helper()
	s := &story.Story{}
	c.story(s)
	all, before := map[string][]string{}, metrics.Values(nil)
	file := filepath.Join(t.TempDir(), "adlock.prom")
	steps := int(c.lasts / c.every())
	for n := range steps {
		now := time.Duration(n) * c.every()
		if c.stops == 0 || now <= c.stops {
			before = c.collect(t, s, now, before, file)
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
	if err != nil {
		t.Fatal(err)
	}
	if c.unread != nil && c.unread(now) {
		m = metrics.None(o)
		m.Add(metrics.Unread(c.user))
	}
	if err := os.WriteFile(file, m.Text(metrics.Prometheus), 0o600); err != nil {
		t.Fatal(err)
	}
	values, err := metrics.ReadValues(file)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// object is JSON, which is YAML as well.
type object = map[string]any

// promtoolTest is a trial as promtool has it.
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
	for when, firing := range c.expect {
		for _, a := range alerts {
			test := object{"eval_time": strconv.Itoa(int(when/time.Second)) + "s", "alertname": a.Alert}
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

// shippedRules reads as much of YAML as the file has.
func shippedRules(t *testing.T) (all []rule) {
	t.Helper()
	text, err := os.ReadFile("adlock-alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
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
		annotations["description"] = strings.NewReplacer("{{ $labels.operand }}", "x", "{{ with $labels.user }} --all-users{{ end }}", all).Replace(a.Description)
	}
	return object{"exp_labels": labels, "exp_annotations": annotations}
}

func TestEachAlertFiresOnlyWhenItShould(t *testing.T) {
	t.Parallel()
	need.Tools(t, "promtool")
	rules := shippedRules(t)
	path, err := filepath.Abs("adlock-alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[time.Duration][]object{}
	fired := map[string]bool{}
	for name, c := range trials {
		tests[c.every()] = append(tests[c.every()], c.promtoolTest(t, name, rules))
		for _, alerts := range c.expect {
			for alert := range alerts {
				fired[alert] = true
			}
		}
	}
	for _, r := range rules {
		if !fired[r.Alert] {
			t.Error(r.Alert, "fires in no trial")
		}
	}
	promtool(t, "check", "rules", path)
	for step, tests := range tests {
		text, err := json.Marshal(object{"rule_files": []string{path}, "evaluation_interval": limit.Format(step), "tests": tests})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "trials.yml")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
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
