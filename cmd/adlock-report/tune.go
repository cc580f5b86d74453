package main

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/idle"
	"adlock/lib/insight/terminal"
	"adlock/lib/learn"
	"adlock/lib/limit"
	"adlock/lib/lockdir"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/runlog"
)

var tuneVerb = verb{
	options: func(q *query) []config.Option {
		return []config.Option{
			q.atomOption(),
			config.StoreOption(),
			{Name: "explain", Help: "with the arithmetic", Set: config.Toggle(&q.explain)},
			{Name: "json", Help: "as JSON, one array; durations are seconds", Set: config.Toggle(&q.json)},
			{Name: "reset", Arg: "ATOM", Help: "forget what the atom with exactly this name has learned", Set: config.Text(&q.reset)},
		}
	},
	exclusive: [][]string{{"reset", "json"}, {"reset", "explain"}, {"reset", "atom"}},
	named:     true,
	show:      tune,
}

type tuned struct {
	atom.Called
	learned   learn.State
	ifElapsed time.Duration // the last run's, else the learned one; unless it is never, no learned ExpireAfter is shorter

	asksIfElapsed, asksExpireAfter bool // the last run had auto for that limit, or its limits are unknown
}

func tune(q *query) error {
	entries, _, err := atomsAndSlots()
	if err != nil {
		return err
	}
	if q.reset != "" {
		return reset(entries, q.reset)
	}
	chosen := q.choose(entries, all(nil))
	if q.atom != "" && !slices.ContainsFunc(entries, chosen.hasEntry) {
		return q.noAtom("tune")
	}
	all := learners(entries, chosen)
	if q.json {
		return write(arrayOf(all, (*tuned).object))
	}
	text := tunedText(all, q.explain)
	if len(all) == 0 {
		which := ""
		if q.atom != "" {
			which = " that matches " + strconv.Quote(q.atom)
		}
		text = "no atom" + which + " has learned anything: it takes --expire-after auto or --if-elapsed auto\n"
	}
	return write([]byte(text))
}

func learners(entries []locker.Entry, chosen choice) []*tuned {
	all := pasts()
	var learned []*tuned
	for i := range entries {
		e := &entries[i]
		p := all[e.Name]
		known := p != nil && p.known
		will := known && (p.learnsIfElapsed || p.limits.Source == policy.Learned)
		if e.Memory.Learned == (learn.State{}) && !will || !chosen.hasEntry(*e) {
			continue
		}
		t := &tuned{Called: e.Called(), learned: e.Memory.Learned, ifElapsed: e.Memory.Learned.IfElapsed(), asksIfElapsed: true, asksExpireAfter: true}
		if known {
			t.ifElapsed, t.asksIfElapsed, t.asksExpireAfter = p.limits.IfElapsed, p.learnsIfElapsed, p.limits.Source == policy.Learned
		}
		learned = append(learned, t)
	}
	return learned
}

func reset(entries []locker.Entry, text string) error {
	i, err := atom.One(locker.CalledOf(entries), []string{text})
	if err != nil {
		return &fault.Error{Kind: fault.Usage, Object: "tune", Err: err}
	}
	name := entries[i].Name
	if store() != "" {
		return config.Become(config.Locksmith, "for a store beyond this machine", "forget", []string{string(name)})
	}
	dir, err := openLocks()
	if err != nil {
		return err
	}
	defer dir.Close()
	return fault.Wrap(dir.Path(name.LastLock()), (&lockdir.Locker{Dir: dir}).Forget(name))
}

func tunedText(all []*tuned, explain bool) string {
	lines := [][]string{{"ATOM", "RUNS", "TYPICAL", "LONGEST", "IFELAPSED", "EXPIREAFTER"}}
	for _, t := range all {
		lines = append(lines, t.cells())
	}
	lines = fit(lines, []string{"LONGEST", "TYPICAL", "RUNS"})
	var w strings.Builder
	for i, line := range lines {
		w.WriteString(joined(line) + "\n")
		if explain && i > 0 {
			w.WriteString(all[i-1].explanation())
		}
	}
	return w.String()
}

func (t *tuned) cells() []string {
	ifElapsed, expireAfter := "-", "-"
	if t.asksIfElapsed {
		ifElapsed = limit.Format(t.learned.IfElapsed())
	}
	if t.asksIfElapsed && t.learned.Spammed() {
		ifElapsed += " (asked for too often)"
	}
	if t.asksExpireAfter {
		expireAfter = limit.Format(t.learned.ExpireAfter(t.ifElapsed))
	}
	return []string{
		terminal.Clean(t.String()), strconv.Itoa(t.learned.Runs),
		terminal.Duration(t.learned.Typical()), terminal.Duration(t.learned.Longest()),
		ifElapsed, expireAfter,
	}
}

func (t *tuned) explanation() (text string) {
	if t.asksIfElapsed {
		text = "  IfElapsed: " + t.learned.ExplainIfElapsed() + "\n"
	}
	if t.asksExpireAfter {
		text += "  ExpireAfter: " + t.learned.ExplainExpireAfter(t.ifElapsed) + "\n"
		if t.learned.ExpireAfter(t.ifElapsed) != limit.Never {
			text += "  A job past it is watched for " + limit.Format(idle.Length(t.learned.Typical()).Round(time.Second)) +
				", and ended if it is idle; one that works is only overdue. Not seen as work: sockets, GPUs, services elsewhere, sleep that is meant. Seen as work: retries for ever.\n"
		}
	}
	return text
}

type tunedObject struct {
	atomObject
	Runs    int           `json:"runs"`
	Typical limit.Seconds `json:"typical_seconds"`
	Longest limit.Seconds `json:"longest_seconds"`
	Spammed bool          `json:"spammed"`
	// These are set only for limits that were auto in the last run, or for both if that run's limits are unknown.
	IfElapsed      *limit.Seconds `json:"if_elapsed_seconds,omitempty"`
	ExpireAfter    *limit.Seconds `json:"expire_after_seconds,omitempty"`
	IfElapsedWhy   string         `json:"if_elapsed_why,omitempty"`
	ExpireAfterWhy string         `json:"expire_after_why,omitempty"`
}

func (t *tuned) object() any {
	o := &tunedObject{
		atomObject: atomOf(t.Called),
		Runs:       t.learned.Runs, Typical: limit.Seconds(t.learned.Typical()), Longest: limit.Seconds(t.learned.Longest()),
		Spammed: t.learned.Spammed(),
	}
	if t.asksIfElapsed {
		o.IfElapsed, o.IfElapsedWhy = seconds(runlog.Some(t.learned.IfElapsed())), t.learned.ExplainIfElapsed()
	}
	if t.asksExpireAfter {
		o.ExpireAfter, o.ExpireAfterWhy = seconds(runlog.Some(t.learned.ExpireAfter(t.ifElapsed))), t.learned.ExplainExpireAfter(t.ifElapsed)
	}
	return o
}
