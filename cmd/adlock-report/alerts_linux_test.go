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
	story  func(j *story.Job)
	lasts  time.Duration
	step   time.Duration                         // from one adlock metrics to the next; 0: a minute
	locks  func(at time.Duration) []metrics.Lock // what the lock directory has; nil: no lock is held
	there  func(at time.Duration) bool           // the atom has a last lock; nil: always
	user   string                                // whose the atom is; "": without --all-users
	unread func(at time.Duration) bool           // that user's directory cannot be read; nil: it can
	stops  time.Duration                         // adlock metrics is not run after that; 0: it always is
	expect map[time.Duration]firing              // each alert that fires at that time
}

// firing are the summaries of alerts.
type firing = map[string]string

const ofX, ofXOfEve = "p run x on web1 ", "p run x of eve on web1 "

func x() atom.Atom { return atom.Atom{Program: "p", Host: story.Host, Operator: "run", Operand: "x"} }

// every adds a run at from and after each interval until to. Each exits with status.
func every(j *story.Job, interval, from, to time.Duration, status int) {
	for at := from; at < to; at += interval {
		j.Run(at, 20*second, status)
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

const second, minute, hour, ten = time.Second, time.Minute, time.Hour, 10 * time.Minute

var trials = map[string]trial{
	"all is well": {
		story: func(j *story.Job) { every(j, ten, 0, 3*hour, 0) }, lasts: 3 * hour,
		expect: at(nothing, hour, 2*hour, 3*hour-minute),
	},
	"each minute": {
		story: func(j *story.Job) { every(j, minute, 0, 2*hour, 0) }, lasts: 2 * hour,
		expect: at(nothing, hour, 90*minute, 2*hour-minute),
	},
	"a job that only fails": {
		story: func(j *story.Job) { every(j, ten, 0, 4*hour, 1) }, lasts: 4 * hour,
		expect: map[time.Duration]firing{
			12 * minute: nil,
			hour:        {"AdlockFails": ofX + "has failed 6 times in a row"},
			3 * hour:    {"AdlockFails": ofX + "has failed 18 times in a row"},
		},
	},
	"one failure": {
		story: func(j *story.Job) {
			every(j, ten, 0, 2*hour, 0)
			j.Run(2*hour, 20*second, 1)
			every(j, ten, 2*hour+ten, 4*hour, 0)
		}, lasts: 4 * hour,
		expect: at(nothing, 2*hour+6*minute, 2*hour+9*minute, 4*hour-minute),
	},
	"no success for twice its usual interval, then recovered": {
		story: func(j *story.Job) {
			every(j, ten, 0, 2*hour+ten, 0)
			every(j, ten, 3*hour, 5*hour, 0)
		}, lasts: 5 * hour,
		expect: map[time.Duration]firing{
			2*hour + 25*minute: nil,
			2*hour + 30*minute: {"AdlockNoSuccess": ofX + "has not succeeded for 29m 40s, more than two of its intervals"},
			3 * hour:           {"AdlockNoSuccess": ofX + "has not succeeded for 59m 40s, more than two of its intervals"},
			3*hour + 2*minute:  nil,
			5*hour - minute:    nil,
		},
	},
	"each ten minutes by day, and none by night": {
		story: func(j *story.Job) {
			for day := range time.Duration(5) {
				every(j, ten, day*24*hour+6*hour, day*24*hour+22*hour, 0)
			}
		}, lasts: 120 * hour, step: 4 * minute,
		expect: at(nothing, 84*hour, 96*hour, 101*hour), // the first three nights teach
	},
	"overdue, then done": {
		story: func(j *story.Job) {
			every(j, ten, 0, 2*hour, 0)
			j.Run(2*hour, 18*minute, 0)
			j.Deny(2*hour+ten, "busy", 1, ten)
		},
		lasts: 3 * hour, locks: held(2*hour, 2*hour+5*minute, 2*hour+18*minute),
		expect: map[time.Duration]firing{
			2*hour + 9*minute:  nil,
			2*hour + 12*minute: {"AdlockOverdue": ofX + "has been running for 12m 0s, longer than it should"},
			2*hour + 20*minute: nil,
		},
	},
	"busy again and again": {
		story: func(j *story.Job) {
			for n := range time.Duration(8) {
				j.Run(n*30*minute, 25*minute, 0)
				j.Deny(n*30*minute+minute, "busy", 24, minute)
			}
		}, lasts: 4 * hour,
		expect: at(nothing, hour+24*minute, 3*hour+24*minute),
	},
	"never a slot": {
		story: func(j *story.Job) {
			every(j, ten, 0, ten, 0)
			j.Deny(ten, "full", 30, minute)
			every(j, ten, 45*minute, hour, 0)
		}, lasts: hour,
		expect: map[time.Duration]firing{
			18 * minute: nil,
			30 * minute: {"AdlockStarves": ofX + "starves: denied a slot 21 times in a row"},
			50 * minute: nil,
		},
	},
	"stuck until it is cleared": {
		story: func(j *story.Job) {
			j.Open(0)
			j.Deny(30*minute, "stuck", 2, 2*hour)
		},
		lasts: 4 * hour, locks: held(0, 20*minute, 3*hour),
		expect: map[time.Duration]firing{
			22 * minute: nil,
			2 * hour: {
				"AdlockStuck":   ofX + "is stuck: its owner has expired and cannot be ended",
				"AdlockOverdue": ofX + "has been running for 2h 0m 0s, longer than it should",
			},
			3*hour + minute: nil,
		},
	},
	"ended by force, once and then twice": {
		story: func(j *story.Job) {
			every(j, ten, 0, hour, 0)
			j.Hang(hour, ten, 7)
			every(j, ten, hour+ten+second, 2*hour, 0)
			j.Hang(2*hour, ten, 7)
			every(j, ten, 2*hour+ten+second, 9*hour, 0)
		}, lasts: 9 * hour, step: 4 * minute,
		expect: map[time.Duration]firing{
			hour + 16*minute:   nil,
			2*hour + 16*minute: {"AdlockEndedByForce": ofX + "is being ended by force (2 times in 6 hours)"},
			9*hour - 4*minute:  nil,
		},
	},
	"paused, and resumed": {
		story: func(j *story.Job) {
			every(j, ten, 0, 2*hour, 0)
			every(j, ten, 5*hour, 6*hour, 0)
		},
		lasts: 6 * hour, locks: pausedFrom(2*hour, 5*hour-ten),
		expect: at(nothing, 3*hour, 5*hour-11*minute, 5*hour-minute, 6*hour-minute),
	},
	"a job that fails is paused": {
		story: func(j *story.Job) { every(j, ten, 0, 2*hour, 1) },
		lasts: 3 * hour, locks: pausedFrom(2*hour, 150*minute),
		expect: map[time.Duration]firing{
			2*hour - minute:   {"AdlockFails": ofX + "has failed 12 times in a row"},
			2*hour + 5*minute: nil,
			3*hour - minute:   {"AdlockFails": ofX + "has failed 12 times in a row"},
		},
	},
	"a pause that is forgotten": {
		story: func(j *story.Job) { every(j, ten, 0, 2*hour, 0) },
		lasts: 28 * hour, step: 4 * minute, locks: pausedFrom(2*hour, 28*hour),
		expect: map[time.Duration]firing{
			25 * hour: nil,
			27 * hour: {"AdlockPauseForgotten": "jobs on web1 have been paused for 1d 1h 0m 0s"},
		},
	},
	"not run, as the lock directory cannot be used": {
		story: func(j *story.Job) {
			every(j, ten, 0, 2*hour, 0)
			j.Add(2*hour, runlog.Event{Kind: runlog.NotRun, PID: 7, Status: runlog.Some(74)})
			every(j, ten, 2*hour+ten, 4*hour, 0)
		}, lasts: 4 * hour,
		expect: map[time.Duration]firing{
			2*hour - minute:   nil,
			2*hour + 5*minute: {"AdlockNotRun": "jobs on web1 are not run: their lock directory cannot be used"},
			3*hour + ten:      nil,
		},
	},
	"retired": {
		story: func(j *story.Job) { every(j, ten, 0, 2*hour, 1) }, lasts: 4 * hour,
		there: func(at time.Duration) bool { return at < 3*hour },
		expect: map[time.Duration]firing{
			3*hour - minute: {"AdlockFails": ofX + "has failed 12 times in a row"},
			3 * hour:        nil,
			4*hour - minute: nil,
		},
	},
	"a job of another user, who is then not read": {
		story: func(j *story.Job) { every(j, ten, 0, 4*hour, 1) }, lasts: 4 * hour, user: "eve",
		unread: func(at time.Duration) bool { return at >= 3*hour },
		expect: map[time.Duration]firing{
			hour:               {"AdlockFails": ofXOfEve + "has failed 6 times in a row"},
			3*hour + 14*minute: nil,
			4*hour - minute:    {"AdlockUserUnread": "jobs of eve on web1 are not all watched: locks or a runlog cannot be read"},
		},
	},
	"two runs by hand, three seconds apart": {
		story: func(j *story.Job) {
			j.Run(0, second, 0)
			j.Run(3*second, second, 0)
		}, lasts: 10 * hour, step: 4 * minute,
		expect: at(nothing, hour, 5*hour, 10*hour-4*minute),
	},
	"ten runs by hand, and then once a day": {
		story: func(j *story.Job) {
			every(j, minute, 9*hour, 9*hour+ten, 0)
			every(j, 24*hour, 15*hour, 80*hour, 0)
		}, lasts: 80 * hour, step: 4 * minute,
		expect: at(nothing, 10*hour, 14*hour, 30*hour, 60*hour, 80*hour-4*minute),
	},
	"no figures": {
		story: func(j *story.Job) { every(j, ten, 0, 5*hour, 0) }, lasts: 5 * hour, stops: 3 * hour,
		expect: map[time.Duration]firing{
			3*hour + 15*minute: nil,
			4 * hour:           {"AdlockMetricsStale": "adlock metrics has not been written for 1h 0m 0s on web1"},
		},
	},
}

var nothing firing

func at(alerts firing, times ...time.Duration) map[time.Duration]firing {
	all := map[time.Duration]firing{}
	for _, t := range times {
		all[t] = alerts
	}
	return all
}

func (c *trial) every() time.Duration { return cmp.Or(c.step, minute) }

// series are the metrics of each step of a trial, by their labels, in the notation of promtool: its
// clock begins at zero.
func (c *trial) series(t *testing.T) map[string][]string {
	t.Helper()
	s := &story.Story{}
	c.story(s.Job("p run x", 0, limit.Never))
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
	must(t, err)
	if c.unread != nil && c.unread(now) {
		m = metrics.None(o)
		m.Add(metrics.Unread(c.user))
	}
	must(t, os.WriteFile(file, m.Text(metrics.Prometheus), 0o600))
	values, err := metrics.ReadValues(file)
	must(t, err)
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

// shippedRules reads as much of YAML as the file has.
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
	must(t, err)
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
