package atom

import (
	"iter"
	"strconv"

	"adlock/lib/exit"
	"adlock/lib/name"
	"adlock/lib/runlog"
)

// recentBytes is how much of the record is looked at for what happened of late:
// its last 700 lines or so, which a denial can afford to read.
const recentBytes = 256 << 10

// sinceAcquired yields what the record has of the atom since it was last taken,
// the newest first.
func (k *Keeper) sinceAcquired(a name.Atom) iter.Seq[runlog.Event] {
	return func(yield func(runlog.Event) bool) {
		for e := range k.Log.Newest(recentBytes) {
			if e.Operand != a.Operand || e.Operator != a.Operator || e.Program != a.Program || e.Host != a.Host {
				continue
			}
			if e.Kind == runlog.Acquire || !yield(e) {
				return
			}
		}
	}
}

// checkStarving says aloud, once, that the atom was denied as often in a row as
// the request finds alarming: a single denial is nothing wrong and is silent,
// but then cron mails it. Too soon does not count: something had completed.
func (k *Keeper) checkStarving(r *Request, o Outcome) {
	if r.Starving == 0 || k.Log == nil || o.Verdict != Busy && o.Verdict != Full {
		return
	}
	inARow := 0
	for e := range k.sinceAcquired(r.Atom) {
		switch {
		case e.Kind == runlog.Starved:
			return // said already
		case e.Kind == runlog.Deny && (e.Verdict == string(Busy) || e.Verdict == string(Full)):
			inARow++
		}
	}
	if inARow < r.Starving {
		return
	}
	e := r.event(runlog.Starved)
	e.Count, e.Verdict, e.Reason = inARow, string(o.Verdict), o.Reason
	k.record(e)
	exit.Report(exit.New(exit.Denied, r.Atom.Operator+" "+r.Atom.Operand, "starving: denied "+strconv.Itoa(inARow)+" times in a row; "+o.Reason))
}
