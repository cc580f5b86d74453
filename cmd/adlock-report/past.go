package main

import (
	"iter"
	"slices"
	"time"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/insight/history"
	"adlock/lib/limit"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/runlog"
)

// past is what the runlog records about an atom and the atom's locks do not.
type past struct {
	atom            atom.Atom
	limits          policy.Limits // of the last run or, before any run, of the last newcomer
	known, ran      bool          // known is true if limits are known, ran if they are of a run
	learnsIfElapsed bool
	fromStart       bool
	oncePer         time.Duration
	last            *history.Run // the run that ended last; nil: none is recorded
	failed          int          // how many runs failed in a row, up to now
	waiting         []waiter     // in the order in which they came
}

type waiter struct {
	pid   int
	node  string        // its machine, unless that is certainly this one
	since time.Time     // when it began to wait; zero: unknown, as of a waiter on another machine
	most  time.Duration // how long it will wait at most; may be limit.Never

	verdict string // why it waits (a locker.Verdict); "": unknown, as of a waiter on another machine
}

// pasts returns the past of each atom, as far as the runlog can be read: status and tune work without a runlog, too.
func pasts() map[atom.Name]*past {
	dir, err := config.RunlogDir()
	if err != nil {
		return nil
	}
	all, err := pastsIn(history.Read(dir))
	if err != nil {
		fault.Report(fault.Wrap(dir, err))
	}
	return all
}

// pastsIn returns the past of each atom in the store in use or, without a store, in a lock directory.
func pastsIn(events iter.Seq2[runlog.Event, error]) (map[atom.Name]*past, error) {
	all := map[atom.Atom]*past{}
	of := func(a atom.Atom) *past {
		if all[a] == nil {
			all[a] = &past{atom: a}
		}
		return all[a]
	}
	tracker := history.Tracker{Run: func(a *history.Atom, r *history.Run) { of(a.Atom).ended(r) }}
	used := store() // called once, as it may read files
	_, err := history.Each(events, func(e *runlog.Event) {
		if e.Store != used {
			return
		}
		if tracker.Add(e); e.Operator != "" {
			of(e.Atom()).add(e)
		}
	})
	named := make(map[atom.Name]*past, len(all))
	for a, p := range all {
		named[a.Name()] = p
	}
	return named, err
}

func (p *past) ended(r *history.Run) {
	p.last = r
	switch r.Outcome {
	case history.Failed:
		p.failed++
	case history.Succeeded:
		p.failed = 0
	}
}

func (p *past) add(e *runlog.Event) {
	runs := e.Kind == runlog.Acquire
	if e.IfElapsed.Set && e.ExpireAfter.Set && (runs || !p.ran) {
		p.ran = runs
		p.limits, p.known = policy.Limits{IfElapsed: e.IfElapsed.Value, ExpireAfter: e.ExpireAfter.Value, Source: policy.Source(e.ExpireAfterFrom)}, true
		p.learnsIfElapsed = e.IfElapsedFrom == string(policy.Learned)
		p.fromStart, p.oncePer = e.FromStart, e.OncePer
	}
	same := func(w waiter) bool { return w.pid == e.PID }
	switch e.Kind {
	case runlog.Wait:
		p.waiting = append(slices.DeleteFunc(p.waiting, same), waiter{pid: e.PID, since: e.Time, most: e.Wait, verdict: e.Verdict})
	case runlog.Acquire, runlog.Deny, runlog.Stuck, runlog.Cancel, runlog.NotRun:
		p.waiting = slices.DeleteFunc(p.waiting, same)
	}
}

// waits reports whether the waiter still waits: the runlog has no event for the death of a waiter.
func (w waiter) waits(now time.Time) bool {
	waited := now.Sub(w.since)
	_, age := process.Still(w.pid)
	return process.PIDLives(w.pid) && (age == 0 || age > waited-clockSlack) && (w.most == limit.Never || waited < w.most+clockSlack)
}

// clockSlack is the tolerance for the difference between the clock of the runlog and the kernel's,
// and for a waiter that reports the end of its wait late.
const clockSlack = time.Second
