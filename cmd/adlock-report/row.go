package main

import (
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"adlock/lib/atom"
	"adlock/lib/insight/history"
	"adlock/lib/limit"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/runlog"
)

// row is one atom as status shows it.
type row struct {
	Name  atom.Name
	atom  atom.Atom // as people call it; zero where only NAME is known
	State string    // idle, waiting, running, stopped, overdue, orphaned, unknown, damaged

	Held       bool
	Age        time.Duration // of the active lock
	Since      time.Time     // when it was taken
	Owner, UID int
	Node       string // the owner's machine, if that may be another one
	Readers    int    // how many hold it together with others; 0: it is not being read
	Still      int    // pid of the owner, or of its command, if that is stopped; 0: neither is
	Changer    int    // pid of the process that is changing its lock just now; 0: none

	Slot, Slots int // the slot that its owner holds, and of how many; 0: none

	Completed   time.Time                 // zero: never
	CompletedOn string                    // on which machine, if that may be another one
	DueIn       runlog.Opt[time.Duration] // of an idle atom whose limits are known
	Last        *history.Run              // the run that ended last; nil: none is recorded
	Failed      int                       // runs that failed in a row, up to now
	Waiting     []waiter                  // the first come first

	Limits      policy.Limits // of the owner, or those last asked for
	LimitsKnown bool

	Takeable bool   // by a newcomer with these limits
	jobLives bool   // though its owner is dead
	silent   bool   // its owner may be dead: locker.View
	overdue  string // the message about an owner past its notice
	Why      string
}

// rowsOf are the atoms that have files, and those only in the runlog that have a waiter or
// whose command was missing lately.
func rowsOf(entries []locker.Entry, slots []locker.Slot, all map[atom.Name]*past, now time.Time) []*row {
	var rows []*row
	for i := range entries {
		rows = append(rows, rowOf(&entries[i], all[entries[i].Name], slots, now))
		delete(all, entries[i].Name)
	}
	for name, p := range all {
		if store() != "" {
			break // whether those are there or in a lock directory is unknown
		}
		r := rowOf(&locker.Entry{Name: name}, p, nil, now)
		if len(r.Waiting) > 0 || r.Last != nil && r.Last.Unstarted && now.Sub(r.Last.End) < ofLate {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b *row) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return rows
}

// ofLate is how long a missing command is shown. A mistyped one has no file that could be
// cleared.
const ofLate = 7 * 24 * time.Hour

func rowOf(e *locker.Entry, p *past, slots []locker.Slot, now time.Time) *row {
	if p == nil {
		p = &past{}
	}
	r := &row{
		Name: e.Name, atom: e.Called().Atom, State: "idle", Completed: e.Completed, CompletedOn: e.CompletedOn, Last: p.last, Failed: p.failed,
		Waiting: slices.DeleteFunc(p.waiting, func(w waiter) bool { return !w.waits(now) }),
		Limits:  p.limits, LimitsKnown: p.known,
	}
	if r.atom == (atom.Atom{}) {
		r.atom = p.atom
	}
	if e.Err != nil {
		r.State, r.Why = "damaged", e.Err.Error()
		return r
	}
	e = r.untried(e)
	for _, w := range e.Waiting {
		r.Waiting = append(r.Waiting, waiter{pid: w.Record.Owner.PID, node: w.Node, most: limit.Never})
	}
	holder := e.Holder()
	if holder.Record.Token != "" { // the owner's own; one with only a pid has none
		r.Limits, r.LimitsKnown = policy.Limits{IfElapsed: holder.Record.IfElapsed, ExpireAfter: holder.Record.ExpireAfter, Source: holder.Record.Source}, true
	}
	d := e.Decide(policy.Terms{Limits: r.Limits})
	r.Takeable, r.Why = d.Step.Granted(), d.Reason()
	switch {
	case holder.Active.Held:
		r.hold(holder, now)
		if overdue := recorderOf(r.atom, &holder).Overdue(r.Limits, holder, holder.Record.Notice); overdue != nil && (r.State == "running" || r.State == "overdue" && overdue.Late()) {
			r.State, r.overdue = "overdue", overdue.Text()+"; "+overdue.Remedy(true)
		}
		r.count(e.Readers)
		r.findSlot(holder, slots)
	case len(r.Waiting) > 0:
		r.State = "waiting"
	case r.LimitsKnown:
		r.DueIn = runlog.Some(policy.DueIn(r.Limits, e.Last))
	}
	return r
}

// untried is the entry without the lock that one of its waiters has linked for a moment, to
// check readers and slots: it does not run.
func (r *row) untried(e *locker.Entry) *locker.Entry {
	for _, w := range r.Waiting {
		if e.Active.Held && e.Record.Owner.PID == w.pid && e.Active.Age < trying {
			return &locker.Entry{Name: e.Name, Completed: e.Completed, View: locker.View{Last: e.Last, Memory: e.Memory}, Readers: e.Readers}
		}
	}
	return e
}

// trying is longer than such a check takes. A lock that has lasted longer is a run whose
// beginning the runlog lacks.
const trying = time.Second

// hold shows the holder of the atom.
func (r *row) hold(e locker.View, now time.Time) {
	r.Held, r.Age, r.Since = true, e.Active.Age, now.Add(-e.Active.Age).Round(time.Second)
	r.Owner, r.UID, r.Node, r.Changer = e.Record.Owner.PID, e.Record.Owner.UID, e.Node, e.Changer
	r.jobLives, r.silent = e.Active.Owner == policy.Orphaned, e.Silent
	switch expired := policy.Expired(r.Limits, e.Active); {
	case e.Active.Owner == policy.Gone || e.Active.Owner == policy.Orphaned:
		r.State = "orphaned"
	case expired && !e.Active.Empty && !e.Silent:
		r.State = "overdue"
	case e.Active.Owner == policy.Unknown || e.Active.Empty || e.Silent:
		r.State = "unknown"
	case r.isStopped(e):
		r.State = "stopped"
	default:
		r.State = "running"
	}
}

// isStopped reports whether the live owner or its command is stopped, as after Ctrl-Z. On
// another machine that is unknown.
func (r *row) isStopped(e locker.View) bool {
	for _, id := range []process.Identity{e.Job.Owner, e.Job.Command} {
		if e.Node != "" || id.PID == 0 || id.Life() != process.Alive {
			continue
		}
		if still, _ := process.Still(id.PID); still {
			r.Still = id.PID
		}
	}
	return r.Still != 0
}

// inTrouble reports whether the atom needs a person: its last run failed or was ended by
// force, or its state shows it.
func (r *row) inTrouble() bool {
	switch r.State {
	case "stopped", "overdue", "orphaned", "unknown", "damaged":
		return true
	}
	return r.lastWord() != ""
}

// count counts the readers, except those that are known to be dead.
func (r *row) count(readers []locker.View) {
	for _, reader := range readers {
		if reader.Active.Owner != policy.Gone {
			r.Readers++
		}
	}
}

// findSlot finds the slot of the holder, which took the atom under a limit.
func (r *row) findSlot(holder locker.View, slots []locker.Slot) {
	for _, s := range slots {
		if holder.Record.Slots >= s.Number && s.Name.Prefix() == r.Name.Prefix() && s.Record.Owner.Same(holder.Record.Owner) {
			r.Slot, r.Slots = s.Number, holder.Record.Slots
		}
	}
}

// called is what the atom is called.
func (r *row) called() atom.Called { return atom.Called{Name: r.Name, Atom: r.atom} }

// words are what the atom is called in the table.
func (r *row) words() string {
	if r.atom == (atom.Atom{}) {
		return string(r.Name)
	}
	return r.atom.Words()
}

// host is the atom's, if known: else as NAME has it.
func (r *row) host() string {
	if r.atom == (atom.Atom{}) {
		return r.Name.Host()
	}
	return r.atom.Host
}

// userOf is userName of an owner of this machine; "" of another's.
func userOf(uid int, node string) string {
	if node != "" {
		return ""
	}
	return userName(uid)
}

// ofUser is a pid with the name of its user.
func ofUser(pid, uid int) string {
	name := userName(uid)
	if name == "" {
		name = strconv.Itoa(uid)
	}
	return strconv.Itoa(pid) + " " + name
}

// userName is the name of a user of this system; "" if it cannot be found, like users of a
// directory service: a program without cgo reads /etc/passwd.
func userName(uid int) string {
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return ""
	}
	return u.Username
}
