package history

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"adlock/lib/atom"
	"adlock/lib/runlog"
)

// Tracker reconstructs runs from events in their order. The zero value with Run set is ready; it must not
// be used concurrently. It keeps each atom and the runs that have not ended.
type Tracker struct {
	// Run is called with each run once its end is known; Finish calls it with the others. It may keep its arguments.
	Run func(*Atom, *Run)

	Match func(atom.Atom) bool // which atoms are tracked; nil: all. For others, Run is never called, and Add returns nil

	atoms map[atom.Atom]*Atom
	open  map[string]*Atom // the atom, by the tokens of its open runs and of its run that ended last
}

// Atoms returns the atoms of all events, sorted.
func (t *Tracker) Atoms() []*Atom {
	return slices.SortedFunc(maps.Values(t.atoms), func(a, b *Atom) int {
		return cmp.Or(cmp.Compare(a.Program, b.Program), cmp.Compare(a.Operator, b.Operator),
			cmp.Compare(a.Operand, b.Operand), cmp.Compare(a.Host, b.Host))
	})
}

// Add adds the next event and returns its atom; nil if the atom is unknown or ignored.
func (t *Tracker) Add(e *runlog.Event) *Atom {
	a := t.atomOf(e)
	if a == nil || a.ignored {
		return nil
	}
	switch e.Kind {
	case runlog.Missing, runlog.NotRun:
		t.Run(a, &Run{PID: e.PID, Start: e.Time, End: e.Time, Outcome: unstarted[e.Kind], Status: e.Status, Unstarted: true})
	case runlog.Acquire:
		t.begin(a, e)
	case runlog.Expire:
		if r := a.find(e.OwnerToken); r != nil {
			r.expired, r.agedFrom = true, e.Time.Add(-e.Age.Value)
			if e.ExpireAfter.Value > 0 { // a newcomer with --replace logs 0
				r.ExpireAfter = e.ExpireAfter
			}
		}
	case runlog.Stuck:
		if r := a.find(e.OwnerToken); r != nil && IsDenial(e) {
			r.expired = false // the newcomer could not end the run: if the run fails later, it was not ended by force
		}
	case runlog.Stop:
		if r := a.find(e.OwnerToken); r != nil {
			r.stopped, r.agedFrom = true, e.Time.Add(-e.Age.Value)
		}
	case runlog.Release:
		t.end(a, e, e.Token, e.Duration, released(e))
	case runlog.Takeover:
		t.end(a, e, e.OwnerToken, e.Age, Ended)
	case runlog.Reclaim:
		t.end(a, e, e.OwnerToken, e.Age, Orphaned)
	case runlog.Clear:
		t.end(a, e, e.OwnerToken, e.Age, Cleared)
	case runlog.Lost:
		if r := a.find(e.Token); r != nil {
			r.lostAt = e.Time
			if e.Store != "" { // in a store, unlike in a directory, no newcomer of this machine will end the owner
				t.lose(a, r, e.Time)
			}
		}
	}
	return a
}

var unstarted = map[runlog.Kind]Outcome{runlog.Missing: Failed, runlog.NotRun: NotRun}

// atomOf returns an event's atom; nil if it is unknown. An owner that found its lock gone may log only the token.
func (t *Tracker) atomOf(e *runlog.Event) *Atom {
	if e.Operator == "" {
		return t.open[e.Token]
	}
	key := e.Atom()
	a := t.atoms[key]
	if a == nil {
		if t.atoms == nil {
			t.atoms, t.open = map[atom.Atom]*Atom{}, map[string]*Atom{}
		}
		a = &Atom{Atom: key, ignored: t.Match != nil && !t.Match(key)}
		t.atoms[key] = a
	}
	return a
}

func released(e *runlog.Event) Outcome {
	if e.Signal != "" || e.Status.Set && e.Status.Value != 0 {
		return Failed
	}
	return Succeeded
}

func (a *Atom) find(token string) *Run {
	for _, r := range a.open {
		if r.Token == token {
			return r
		}
	}
	return nil
}

// begin begins a run. A turn is one writer, or readers that share the atom. The ends of two turns may be missing, as an
// owner removes its lock before it logs the release. When a third turn begins, the end of the first is lost.
func (t *Tracker) begin(a *Atom, e *runlog.Event) {
	r := &Run{PID: e.PID, Node: e.Node, Token: e.Token, Start: e.Time, Shared: e.Shared, FromStart: e.FromStart, IfElapsed: e.IfElapsed, ExpireAfter: e.ExpireAfter}
	if before, last := a.turns(); len(last) > 0 && !r.sharesWith(last[0]) {
		for _, lost := range before {
			t.lose(a, lost, e.Time)
		}
	}
	a.open = append(a.open, r)
	t.open[e.Token] = a
}

func (a *Atom) turns() (before, last []*Run) {
	first := max(0, len(a.open)-1)
	for first > 0 && a.open[first].sharesWith(a.open[first-1]) {
		first--
	}
	open := slices.Clone(a.open) // a.open changes with each run that is closed
	return open[:first], open[first:]
}

func (r *Run) sharesWith(other *Run) bool { return r.Shared && other.Shared }

// end ends the run with that token. how is the outcome, but Cleared after a stop event becomes Stopped, and Failed
// after an expire event becomes Ended. If the start is missing in the runlog, end computes it from held.
func (t *Tracker) end(a *Atom, e *runlog.Event, token string, held runlog.Opt[time.Duration], how Outcome) {
	r := a.find(token)
	if r == nil {
		if token != "" && token == a.last || !held.Set || e.OwnerNode != "" && e.OwnerNode == e.Node {
			return // the run has already ended, its start is unknown, or its owner, on this machine, has logged the end
		}
		r = &Run{PID: e.PID, Node: e.Node, Token: token, Start: e.Time.Add(-held.Value)}
		if e.Owner != 0 {
			r.PID, r.Node = e.Owner, e.OwnerNode
		}
	}
	r.End, r.Status, r.Signal, r.Outcome = e.Time, e.Status, e.Signal, how
	r.Held = max(0, e.Time.Sub(r.Start))
	if held.Set {
		r.Held = held.Value
	}
	if e.Kind != runlog.Release && !r.agedFrom.IsZero() {
		r.Held = max(r.Held, e.Time.Sub(r.agedFrom))
	}
	switch {
	case how == Cleared && r.stopped:
		r.Outcome, r.By, r.ByNode = Stopped, e.PID, e.Node
	case how == Failed && r.expired:
		r.Outcome, r.By, r.ByNode = Ended, e.PID, e.Node // by its supervisor
	case e.Kind != runlog.Release:
		r.By, r.ByNode = e.PID, e.Node
	}
	t.close(a, r)
}

// lose ends a run as Lost, at the time when its owner found the lock gone or, if that time is unknown, at next.
func (t *Tracker) lose(a *Atom, r *Run, next time.Time) {
	r.Outcome, r.End = Lost, next
	if !r.lostAt.IsZero() {
		r.End = r.lostAt
	}
	r.Held = max(0, r.End.Sub(r.Start))
	t.close(a, r)
}

func (t *Tracker) close(a *Atom, r *Run) {
	a.open = slices.DeleteFunc(a.open, func(other *Run) bool { return other == r })
	delete(t.open, a.last)
	a.last = r.Token
	if a.last != "" { // else the owner was known by its pid alone
		t.open[a.last] = a
	}
	t.Run(a, r)
}

// Finish is the last call: it passes the runs without an end to Run. The outcome of a run in an atom's latest turn is
// what state returns for its token at the time now: Running (also if state is nil), Orphaned or Lost. Earlier runs are
// Lost, and so are runs whose owner found the lock gone.
func (t *Tracker) Finish(now time.Time, state func(token string) Outcome) {
	for _, a := range t.Atoms() {
		before, last := a.turns()
		for _, r := range before {
			t.lose(a, r, last[0].Start)
		}
		for _, r := range last {
			if state != nil {
				r.Outcome = state(r.Token)
			}
			if r.Outcome == Lost && r.Start.After(now) {
				r.Outcome = Running
			}
			if !r.lostAt.IsZero() || r.Outcome == Lost {
				t.lose(a, r, r.Start)
				continue
			}
			if r.Outcome != Running {
				r.End = now
			}
			r.Held = max(0, now.Sub(r.Start))
			t.close(a, r)
		}
	}
}
