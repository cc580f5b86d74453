package main

import (
	"cmp"
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
	"adlock/lib/record"
	"adlock/lib/runlog"
	"adlock/lib/sysfile"
)

type row struct {
	atom.Called
	user  string // whose lock directory it is; "": only one is shown
	State string // one of idle, waiting, paused, running, stopped, overdue, orphaned, unknown, damaged

	Held       bool
	Age        time.Duration // of the active lock
	Since      time.Time     // when it was acquired
	Owner, UID int
	lock       atom.File // the owner's
	Node       string    // the owner's machine, unless that is certainly this one
	Readers    int       // how many readers hold the atom; 0: none
	Still      int       // pid of the owner, or of its command, if that is stopped; 0: neither is
	Changer    int       // pid of the process that is changing the lock just now; 0: none
	watcher    int       // pid of the newcomer that watches whether the job works; 0: none

	Slot, Slots int // which slot the owner has (of a semaphore: how many are held), and how many there are; 0: none

	Completed   time.Time                 // when a run last completed; zero: never
	CompletedOn string                    // on which machine the run completed, unless on this one for certain
	DueIn       runlog.Opt[time.Duration] // set only for an idle atom whose limits are known
	Last        *history.Run              // the run that ended last; nil: none is recorded
	Failed      int                       // runs that failed in a row, up to now
	Waiting     []waiter                  // in the order in which they came

	Limits      policy.Limits // the owner's; without an owner, past.limits
	LimitsKnown bool

	Takeable bool // a newcomer with these limits would acquire the atom
	paused   bool
	jobLives bool   // the owner is dead, but processes of its job live
	silent   bool   // the owner may be dead: locker.View.Silent
	overdue  string // the message about an owner past its notice
	Why      string // why a newcomer would acquire the atom, or would not; of a damaged lock, the error
	figures  string // Why without its first words
}

// rowsOf returns a row for each entry, and deletes its atom from the map all. An atom that remains there gets a row only
// if it has a waiter, or a recent last run that could not be started. Once the time to read is up, rowsOf omits the rest.
func (a *account) rowsOf(all map[atom.Name]*past, now time.Time) []*row {
	var rows []*row
	for i := range a.entries {
		e := &a.entries[i]
		if !a.goesOn() {
			a.omitted += len(a.entries) - i
			break
		}
		rows = append(rows, a.rowOf(e, all[e.Name], now))
		delete(all, e.Name)
	}
	for name, p := range all {
		if !a.goesOn() {
			a.omitted++ // at least this atom
			break
		}
		r := a.rowOf(&locker.Entry{Name: name, View: locker.View{Pause: a.host}}, p, now)
		if len(r.Waiting) > 0 || r.Last != nil && r.Last.Unstarted && now.Sub(r.Last.End) < history.UnstartedShownFor {
			rows = append(rows, r)
		}
	}
	slices.SortFunc(rows, func(a, b *row) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return rows
}

func (a *account) rowOf(e *locker.Entry, p *past, now time.Time) *row {
	p = cmp.Or(p, &past{})
	r := &row{
		Called: e.Called(), user: a.user, UID: a.uid, State: "idle", Completed: e.Completed, CompletedOn: e.CompletedOn, Last: p.last, Failed: p.failed,
		Waiting: slices.DeleteFunc(p.waiting, func(w waiter) bool { return !w.waits(now) }),
		Limits:  p.limits, LimitsKnown: p.known,
	}
	if r.Atom == (atom.Atom{}) {
		r.Atom = p.atom
	}
	if e.Err != nil {
		r.State, r.Why = "damaged", e.Err.Error()
		return r
	}
	e = r.withoutProbe(e)
	r.queue(e.Waiting)
	holder := e.Holder()
	if holder.Record.Token != "" { // show the owner's own limits; a lock with only a pid has none
		r.Limits, r.LimitsKnown = policy.Limits{IfElapsed: holder.Record.IfElapsed, ExpireAfter: holder.Record.ExpireAfter, Source: holder.Record.Source}, true
	}
	if p.fromStart {
		e.Last = locker.LastView(record.Last{Completed: e.Completed, Memory: e.Memory}, true, locker.Moment{Real: now})
	}
	terms := policy.Terms{Limits: r.Limits, Tick: policy.TickAt(now, p.oncePer)}
	d := e.Decide(terms)
	r.Takeable, r.Why, r.paused = d.Step.Granted(), d.Reason(), d.Step == policy.Paused
	going := *e
	going.Pause = policy.Pause{} // the pause is shown in a separate note
	alone := going.Decide(terms)
	r.figures = alone.Figures()
	switch {
	case holder.Active.Held:
		r.hold(holder, now)
		rec := a.recorderOf(r.Atom, holder)
		if overdue := rec.Overdue(r.Limits, *holder, holder.Record.Notice); overdue != nil && (r.State == "running" || r.State == "overdue" && overdue.Late) {
			r.State, r.overdue = "overdue", overdue.Text()+"; "+rec.Remedy(overdue, true)
		}
		r.watcher = e.Watcher
		for _, reader := range e.Readers {
			if reader.Active.Owner != policy.Gone { // a dead reader holds nothing
				r.Readers++
			}
		}
		r.findSlot(holder, a.slots)
	case len(r.Waiting) > 0:
		r.State = "waiting"
	case e.Pause.On:
		r.State = "paused"
	case r.LimitsKnown:
		r.DueIn = runlog.Some(policy.DueIn(r.Limits, e.Last))
		if d.TickUsed() {
			r.DueIn.Value = max(r.DueIn.Value, terms.Tick.Next().Sub(now))
		}
	}
	return r
}

// queue adds the waiters of a store's queue. It keeps what the runlog has about a waiter on this machine.
func (r *row) queue(line []locker.View) {
	here, _ := sysfile.NodeName() // "" is the name of no machine
	for _, w := range line {
		next := waiter{pid: w.Record.Owner.PID, most: limit.Never}
		isNext := func(known waiter) bool { return known.node == "" && known.pid == next.pid }
		if i := slices.IndexFunc(r.Waiting, isNext); i >= 0 && w.Node == here {
			next = r.Waiting[i]
			r.Waiting = slices.Delete(r.Waiting, i, i+1)
		}
		next.node = w.Node
		r.Waiting = append(r.Waiting, next)
	}
}

// withoutProbe returns the entry without a lock that a waiter has linked only for a moment, to check for
// readers and slots: that waiter does not run the atom.
func (r *row) withoutProbe(e *locker.Entry) *locker.Entry {
	for _, w := range r.Waiting {
		if e.Active.Held && e.Record.Owner.PID == w.pid && e.Active.Age < longestProbe {
			return &locker.Entry{Name: e.Name, Completed: e.Completed, View: locker.View{Last: e.Last, Memory: e.Memory, Pause: e.Pause}, Readers: e.Readers, Ticks: e.Ticks}
		}
	}
	return e
}

// longestProbe is longer than a check for readers and slots, for which a waiter holds the lock. If a waiter's lock is
// older, the waiter runs its job, and the runlog lacks the acquisition.
const longestProbe = time.Second

func (r *row) hold(e *locker.View, now time.Time) {
	r.Held, r.Age, r.Since = true, e.Active.Age, e.Since(now).Round(time.Second)
	r.Owner, r.UID, r.Node, r.Changer = e.Record.Owner.PID, e.Record.Owner.UID, e.Node, e.Changer
	r.jobLives, r.silent, r.lock, r.lock.Name = e.Active.Owner == policy.Orphaned, e.Silent, e.Record.Lock(), r.Name
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

// isStopped reports whether the owner or its command is stopped (by Ctrl-Z, say), and sets Still to its pid.
func (r *row) isStopped(e *locker.View) bool {
	for _, id := range []process.Identity{e.Job.Owner, e.Job.Command} {
		if user, err := process.User(id.PID); e.Whose != 0 && (err != nil || user != e.Whose) { // the user could have written any pid into the lock
			continue
		}
		if e.Node != "" || id.PID == 0 || id.Life() != process.Alive {
			continue
		}
		if still, _ := process.Still(id.PID); still {
			r.Still = id.PID
		}
	}
	return r.Still != 0
}

func (r *row) inTrouble() bool {
	switch r.State {
	case "stopped", "overdue", "orphaned", "unknown", "damaged":
		return true
	}
	return r.lastWord() != ""
}

func (r *row) findSlot(holder *locker.View, slots []locker.Slot) {
	for _, s := range slots {
		switch {
		case holder.Record.Slots == 0 || s.Name.SlotPrefix() != r.Name.SlotPrefix():
		case r.Atom.IsNamed():
			if r.Slots = holder.Record.Slots; s.Active.Owner != policy.Gone {
				r.Slot++
			}
		case s.Record.Owner.Same(holder.Record.Owner):
			r.Slot, r.Slots = s.Number, holder.Record.Slots
		}
	}
}

func (r *row) isSemaphore() bool { return r.Slots > 0 && r.Atom.IsNamed() }

// host is the atom's host if known, else the canonical one in NAME.
func (r *row) host() string {
	if r.Atom == (atom.Atom{}) {
		return r.Name.Host()
	}
	return r.Atom.Host
}

func ofUser(pid, uid int) string { return strconv.Itoa(pid) + " " + sysfile.UserName(uid) }

// userName is the name of a user of this system; "" if it cannot be found. A program without cgo reads only
// /etc/passwd, and so finds no user of a directory service.
func userName(uid int) string {
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return ""
	}
	return u.Username
}
