// Package history reconstructs runs from the runlog: when each acquisition began, how it ended, and which
// process ended it. The runlog may be incomplete: it is bounded, lines are lost on a full disk, and a
// crashing machine writes none. So the beginning of a run may be inferred from how long it took, and a run
// without an end is Lost: it does not count as Running for ever.
package history

import (
	"time"

	"adlock/lib/atom"
	"adlock/lib/runlog"
)

type Outcome int

const (
	Running   Outcome = iota // the run is not known to have ended
	Succeeded                // released, with status 0 or with none, as a script that fails does not reach its release
	Failed                   // released with another status or after a signal, or its command could not be run (Unstarted)
	Ended                    // by force: the run had passed ExpireAfter, or a newcomer replaced it (--replace)
	Orphaned                 // its owner died without a release: a newcomer found that, or (By is 0) its lock is still there
	Cleared                  // a person removed its lock (adlock clear)
	Stopped                  // a person had its job ended (adlock stop)
	Lost                     // its lock disappeared, or the runlog does not have its end
	NotRun                   // adlock did not run the job: trouble with the lock, refused options, or its own job had the lock
	Outcomes                 // how many outcomes there are
)

var outcomeNames = [Outcomes]string{"running", "success", "failure", "ended", "orphaned", "cleared", "stopped", "lost", "not-run"}

func (o Outcome) String() string { return outcomeNames[o] }

type Run struct {
	PID   int
	Node  string // the owner's machine, unless that is certainly this one
	Token string
	Start time.Time
	End   time.Time     // zero while it runs
	Held  time.Duration // how long it held the atom, or has held it: by the event of its end and the time of its ending, else by the wall clock

	Outcome Outcome
	Status  runlog.Opt[int]
	Signal  string // the signal that ended the job, without SIG
	By      int    // the process that ended or cleared the run, or found it dead; PID if its own supervisor did; 0: none
	ByNode  string // the machine of By, unless that is certainly this one

	Shared    bool // it was a reader: other readers may have held the atom at the same time
	Unstarted bool // its command could not be run, or adlock did not run it: it held nothing

	FromStart              bool                      // IfElapsed counts from Start
	IfElapsed, ExpireAfter runlog.Opt[time.Duration] // the owner's; an expire event sets ExpireAfter to the limit in force

	expired  bool      // its ending has begun: there is an expire event, and no newcomer's stuck event after it
	stopped  bool      // there is a stop event
	agedFrom time.Time // when it began, by its age in the expire or stop event: the event of its end repeats that age
	lostAt   time.Time // when its owner reported that the lock was gone; zero: it did not
}

// UnstartedShownFor is how long an Unstarted run of an atom without files is shown, as no person can clear such an
// atom. The time is longer than the interval of a weekly job.
const UnstartedShownFor = 8 * 24 * time.Hour

// Completed reports whether the job ran and released its lock, and was not ended by force. Then Held is its runtime.
func (r *Run) Completed() bool {
	return (r.Outcome == Succeeded || r.Outcome == Failed) && !r.Unstarted
}

func (r *Run) Owner() string { return runlog.On(r.PID, r.Node) }

// Ender describes the process that ended the run (By); self reports whether it was the run's own supervisor.
func (r *Run) Ender() (ender string, self bool) {
	return runlog.On(r.By, r.ByNode), r.By == r.PID && r.ByNode == r.Node
}

// Atom is an atom in the runlog, with those of its runs that have not ended.
type Atom struct {
	atom.Atom
	ignored bool   // by Tracker.Match
	open    []*Run // in the order of their starts
	last    string // token of the run that ended last
}
