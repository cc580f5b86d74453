package main

import (
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

// past is what the runlog knows of an atom and its locks do not.
type past struct {
	atom            atom.Atom
	limits          policy.Limits // last asked for
	known           bool          // the limits are
	learnsIfElapsed bool
	last            *history.Run // the run that ended last; nil: none is recorded
	failed          int          // how many runs failed in a row, up to now
	waiting         []waiter     // in the order of their coming
}

// waiter is a process that began to wait for an atom, and was not answered since.
type waiter struct {
	pid   int
	node  string        // its machine, if that may be another one
	since time.Time     // zero: not known, as in a store
	most  time.Duration // as long as it will wait

	verdict string // why it was denied: locker.Verdict; "": not known, as in a store
}

// pasts reads the runlog, by NAME, about the chosen store, or about lock directories: an
// atom of the same name in another place is another one. It is an aid: if the runlog cannot
// be read, its columns are empty.
func pasts() map[atom.Name]*past {
	dir, err := config.RunlogDir()
	if err != nil {
		return nil
	}
	all := map[atom.Atom]*past{}
	of := func(a atom.Atom) *past {
		if all[a] == nil {
			all[a] = &past{atom: a}
		}
		return all[a]
	}
	teller := history.Teller{Run: func(a *history.Atom, r *history.Run) { of(a.Atom).ended(r) }}
	_, err = history.Each(history.Read(dir), func(e *runlog.Event) {
		if e.Store != store() {
			return
		}
		if teller.Add(e); e.Operator != "" {
			of(history.AtomOf(e)).hear(e)
		}
	})
	if err != nil {
		fault.Report(fault.Wrap(dir, err))
	}
	named := make(map[atom.Name]*past, len(all))
	for a, p := range all {
		named[a.Name()] = p
	}
	return named
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

func (p *past) hear(e *runlog.Event) {
	if e.IfElapsed.Set && e.ExpireAfter.Set {
		p.limits, p.known = policy.Limits{IfElapsed: e.IfElapsed.Value, ExpireAfter: e.ExpireAfter.Value, Source: policy.Source(e.ExpireAfterFrom)}, true
		p.learnsIfElapsed = e.IfElapsedFrom == string(policy.Learned)
	}
	same := func(w waiter) bool { return w.pid == e.PID }
	switch e.Kind {
	case runlog.Wait:
		if !slices.ContainsFunc(p.waiting, same) {
			p.waiting = append(p.waiting, waiter{pid: e.PID, since: e.Time, most: e.Wait, verdict: e.Verdict})
		}
	case runlog.Acquire, runlog.Deny, runlog.Stuck, runlog.Cancel, runlog.NotRun, runlog.Unlocked:
		p.waiting = slices.DeleteFunc(p.waiting, same)
	}
}

// waits reports whether the waiter still waits: the process lives, lived when it began to
// wait, and its time is not up. The runlog has no event for one that died.
func (w waiter) waits(now time.Time) bool {
	waited := now.Sub(w.since)
	_, age := process.Still(w.pid)
	return process.PIDLives(w.pid) && (age == 0 || age > waited-clockSlack) && (w.most == limit.Never || waited < w.most+clockSlack)
}

// clockSlack is by how much the clock of the runlog may differ from that of the
// kernel, and how late a waiter may be to say that its time is up.
const clockSlack = time.Second
