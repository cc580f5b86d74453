// Package policy decides: figure 3 of the 1997 paper with its holes closed, as
// one pure function over what was found and what was asked for. A newcomer that takes an
// atom, says what taking it would do, or tells what is, asks Decide. It reads no
// clock, no file and no process table.
package policy

import (
	"strconv"
	"time"

	"adlock/lib/limit"
)

// DefaultPause is the default pause between the signals of an ending. Neither limit has a
// default: nothing is skipped and no job is ended without a person's setting.
const DefaultPause = 3 * time.Second

// FutureSlack is how far in the future a last lock may lie before it counts as
// invalid: coarse clocks and file servers differ by a little.
const FutureSlack = 2 * time.Second

// emptyGrace is how long an empty lock is taken for one being written; one that
// lies further than this in the future is not being written either.
const emptyGrace = time.Minute

// Limits are the newcomer's.
type Limits struct {
	IfElapsed   time.Duration // not sooner than this after the last completion
	ExpireAfter time.Duration // the owner may run this long
	Source      Source        // of ExpireAfter; None: it does not count
}

// OfOwner is the limit that the newcomer leaves in its lock as the owner. 0 is what it says to
// end another (--replace), and asks for no end of its own.
func (l Limits) OfOwner() (expireAfter time.Duration, source Source) {
	if l.ExpireAfter == 0 || l.Source == None {
		return limit.Never, None
	}
	return l.ExpireAfter, l.Source
}

// Source says where a limit is from.
type Source string

// The sources.
const (
	None    Source = ""        // no limit is set
	Learned Source = "learned" // the atom's own history: a person has asked for that (auto)
	Said    Source = "said"    // set by a person
)

// Warning returns the paper's rule of thumb if the limits break it, else "".
func (l Limits) Warning() string {
	if l.Source != None && l.ExpireAfter < l.IfElapsed && l.IfElapsed != limit.Never {
		return "ExpireAfter " + limit.Format(l.ExpireAfter) + " is below IfElapsed " + limit.Format(l.IfElapsed) +
			": every overrun will be ended at the next start"
	}
	return ""
}

// Terms are what a newcomer asks for.
type Terms struct {
	Limits
	Shared bool // it reads: others that read may hold the atom at the same time
	Slots  int  // at most so many atoms of the program at once; 0: any number
	Tick   Tick // the atom runs once in it

	Program string // the program of the slots, for messages
}

// ForReader are the terms on which a reader's lock is in a writer's way: too soon depends only on
// the atom's own last lock.
func (t Terms) ForReader() Terms {
	return Terms{Limits: Limits{ExpireAfter: t.ExpireAfter, Source: t.Source}}
}

// ForSlot are the terms on which a slot is taken: it is never ended by the newcomer
// of another atom.
func (t Terms) ForSlot() Terms {
	return Terms{Limits: Limits{ExpireAfter: limit.Never, Source: Said}}
}

// Situation is the state of an atom and around it. Fields that were not read are zero.
type Situation struct {
	Last    Last
	Active  Active
	Readers []Active // the readers' locks
	Slots   []Active // the slots of the program up to the newcomer's limit, its own owner's left out

	TickUsed bool // the newcomer's tick was claimed
}

// Decision is a newcomer's next step, and the lock it is about.
type Decision struct {
	Step   Step
	Active Active // the lock that decided: the active one, else a reader's
	Reader int    // which of the readers that was, from 0; -1: none

	terms Terms
	last  Last
	used  bool   // the tick is
	why   string // a reason that the situation does not tell; "": there is none
}

// Last is what the last lock says.
type Last struct {
	Completed bool          // the atom has completed before
	Age       time.Duration // since then; negative where a fixed 'now' lies before it
	FromStart bool          // Age is since the start of that run
	Future    bool          // it lies in the future by the real clock, so it does not count
}

// Owner is the known state of the active lock's owner.
type Owner int

// The states of an owner.
const (
	Lives     Owner = iota
	Gone            // provably dead, as is all that can be known of its job
	Orphaned        // provably dead, and something of its job lives
	Unknown         // cannot be checked from here: another pid namespace, another host
	Ancestor        // the newcomer itself or one of its ancestors
	Untouched       // lives, and must not be signalled: a lock with only a pid
	Waiter          // waits for the atom itself, and came first
)

// Active is what the active lock says.
type Active struct {
	Held     bool          // there is one
	Empty    bool          // it has no content
	Age      time.Duration // of an empty one by the real clock: whether it is being written no pass clock tells
	Owner    Owner
	Asked    time.Duration // the ExpireAfter that the owner asked for
	Source   Source        // of Asked; None: the owner asked for none
	Patience time.Duration // how much longer it is left to its supervisor, which ends it by itself (--enforce)
	Remote   bool          // it is in a store: its job is seen on its own machine alone
	Idle     time.Duration // in a store: for so long its locksmith has seen the job do nothing
	Work     string        // or what it has seen the job do, in words
	Entering bool          // it is that of a reader on its way to a lock of its own
}

// Step is a newcomer's next step.
type Step int

// The steps.
const (
	TooSoon Step = iota // denied: the last lock is too young
	Busy                // denied: the atom runs
	Acquire             // nothing is in the way
	Expire              // end the owner carefully, then replace its lock
	Reclaim             // the owner is dead: replace its lock
	Unempty             // clear the empty lock, then look again
	Stuck               // expired, but the owner cannot be ended from here
	Full                // denied: as many atoms of the program run as the newcomer allows
)

// Granted reports whether the newcomer gets the atom, if nothing changes meanwhile and an owner
// that must be ended can be.
func (s Step) Granted() bool {
	return s == Acquire || s == Expire || s == Reclaim || s == Unempty
}

// Decide returns what a newcomer on these terms does in this situation. The reason for a denial
// is the first in the order in which a newcomer would find out: too soon, the active lock,
// readers, slots.
func Decide(t Terms, s Situation) Decision {
	d := Decision{Step: decide(t.Limits, s.Last, s.Active), Active: s.Active, Reader: -1, terms: t, last: s.Last}
	if d.used = t.Tick.Asked() && s.TickUsed; d.used {
		d.Step = TooSoon
		return d
	}
	if s.Active.Entering && t.Shared && d.Step == Busy {
		d.Step, d.Active = Acquire, Active{} // another reader, on its way to a lock of its own
	}
	if d.Step.Granted() && !t.Shared {
		d.amongReaders(s.Readers)
	}
	if d.Step.Granted() && t.Slots > 0 && taken(t, s.Slots) >= t.Slots {
		d.Step = Full
	}
	return d
}

// amongReaders lets the first reader decide that denies the newcomer, else the
// first that would have to make way, unless there is an owner that would.
func (d *Decision) amongReaders(readers []Active) {
	for i, reader := range readers {
		step := decide(d.terms.ForReader().Limits, Last{}, reader)
		if step == Acquire || step.Granted() && d.Step != Acquire {
			continue
		}
		d.Step, d.Active, d.Reader = step, reader, i
		if !step.Granted() {
			return
		}
	}
}

// taken counts the slots that are not to be had. A newcomer tries them one
// after the other, from the first (takeSlot of a locker), on the terms of ForSlot.
func taken(t Terms, slots []Active) (n int) {
	for _, slot := range slots {
		if slot.Held && !decide(t.ForSlot().Limits, Last{}, slot).Granted() {
			n++
		}
	}
	return n
}

// decide is the paper's figure: what a newcomer with these limits does about these
// two locks.
func decide(limits Limits, last Last, active Active) Step {
	if !Due(limits, last) {
		return TooSoon
	}
	if !active.Held {
		return Acquire
	}
	if active.Empty {
		if active.Age.Abs() < emptyGrace {
			return Busy
		}
		return Unempty
	}
	expired := Expired(limits, active)
	switch active.Owner {
	case Gone:
		return Reclaim
	case Lives, Orphaned:
		if expired && !spared(limits, active) {
			return Expire
		}
	case Unknown:
		if expired {
			return Stuck
		}
	}
	return Busy
}

// Due reports whether IfElapsed has passed. 0 is always due; never is due only
// until the atom has completed once.
func Due(limits Limits, last Last) bool {
	if limits.IfElapsed == 0 || !last.Completed || last.Future {
		return true
	}
	return limits.IfElapsed != limit.Never && last.Age >= interval(limits, last)
}

// fromStartSlack shortens an interval that counts from the start of the last run: cron starts a
// job a little early or late, and a daily job must not slip.
func fromStartSlack(ifElapsed time.Duration) time.Duration {
	return min(30*time.Second, max(time.Second, (ifElapsed/10).Truncate(time.Second)))
}

// interval is the age from which on the last lock is due.
func interval(limits Limits, last Last) time.Duration {
	if last.FromStart {
		return limits.IfElapsed - fromStartSlack(limits.IfElapsed)
	}
	return limits.IfElapsed
}

// InForce is the limit that holds for the active lock where this newcomer meets it, and where
// it is from: what the newcomer says; else the owner's, which a learned limit of the newcomer's
// may lengthen; else never.
func InForce(limits Limits, active Active) (expireAfter time.Duration, source Source) {
	switch {
	case limits.Source == Said, limits.Source == Learned && active.Source == None,
		limits.Source == Learned && limits.ExpireAfter != limit.Never && limits.ExpireAfter > active.Asked:
		return limits.ExpireAfter, limits.Source
	case active.Source != None:
		return active.Asked, active.Source
	}
	return limit.Never, None
}

// Expiry is the age at which the active lock expires for this newcomer: the limit in force. If
// the owner's supervisor ends the job by itself, newcomers leave that to it for its patience.
func Expiry(limits Limits, active Active) time.Duration {
	expiry, _ := InForce(limits, active)
	return min(expiry, limit.Never-active.Patience) + active.Patience // never stays never
}

// Expired reports whether the active lock has expired for this newcomer.
func Expired(limits Limits, active Active) bool { return active.Age >= Expiry(limits, active) }

// OnlyIdle tells whether an owner that has expired is ended only where its job is seen to be
// idle: a limit that was learned from runtimes cannot tell a long run from one that hangs. What a
// person has said ends the job whatever it does.
func OnlyIdle(limits Limits, active Active) bool {
	_, source := InForce(limits, active)
	return source == Learned
}

// WatchFirst tells whether the newcomer itself is to see that. In a store the owner's locksmith
// does.
func WatchFirst(limits Limits, active Active) bool { return OnlyIdle(limits, active) && !active.Remote }

// spared tells whether an owner in a store goes on past its limit, as it is not seen to be idle.
func spared(limits Limits, active Active) bool {
	return active.Remote && active.Idle == 0 && OnlyIdle(limits, active) && Expired(limits, active)
}

// Notice is the age at which a person is told that a run takes long.
type Notice struct {
	After time.Duration
	Said  bool // set by a person; else learned
}

// Overdue reports whether the owner has passed its notice: an explicit one, or a learned one if
// no limit is in force that would end the owner whatever it does.
func Overdue(limits Limits, active Active, notice Notice) bool {
	if !active.Held || active.Empty || active.Owner == Gone || active.Owner == Waiter || active.Age < notice.After {
		return false
	}
	return notice.Said || Expiry(limits, active) == limit.Never || OnlyIdle(limits, active) && Expired(limits, active)
}

// With is the decision with another step about the same lock.
func (d Decision) With(step Step) Decision {
	d.Step = step
	return d
}

// Because is With for a reason that the situation does not tell: why an owner that
// has expired cannot be ended (Stuck), or must be left alone (Busy).
func (d Decision) Because(step Step, why string) Decision {
	d.why = why
	return d.With(step)
}

func full(t Terms) string {
	if t.Slots == 1 {
		return "full: an atom of " + t.Program + " is running"
	}
	return "full: " + strconv.Itoa(t.Slots) + " atoms of " + t.Program + " are running"
}

// Reason tells the step with the figures behind it, for --dry-run and the runlog.
func (d Decision) Reason() string {
	if d.Step == Full {
		return full(d.terms)
	}
	if d.TickUsed() {
		return d.terms.Tick.used()
	}
	if d.why != "" && d.Step == Busy {
		return "busy: " + d.why
	}
	if d.why != "" {
		return stuck(d.terms.Limits, d.Active, d.why)
	}
	text := reason(d.Step, d.terms.Limits, d.last, d.Active)
	if d.terms.Tick.Asked() && d.Step.Granted() {
		text += "; not run yet " + d.terms.Tick.in()
	}
	return text
}

func reason(step Step, limits Limits, last Last, active Active) string {
	switch step {
	case TooSoon:
		return tooSoon(limits, last)
	case Busy:
		return "busy: " + busy(limits, active)
	case Acquire:
		return "free: " + completed(last) + ", " + wanted(limits, last) + ", " + LimitText(limits.OfOwner())
	case Expire:
		text := "expired: " + Running(limits, active) + "; it would be "
		if WatchFirst(limits, active) {
			return text + "watched first, and ended if it is idle"
		}
		return text + "ended"
	case Reclaim:
		return "free: the owner is dead; its lock would be replaced"
	case Unempty:
		return "free: the lock is empty and " + limit.FormatAge(active.Age) + " old; it would be cleared"
	}
	return stuck(limits, active, "its owner cannot be checked from here")
}

func stuck(limits Limits, active Active, why string) string {
	return "stuck: " + Running(limits, active) + ", and " + why
}

func tooSoon(limits Limits, last Last) string {
	text := "too soon: " + completed(last) + ", " + wanted(limits, last)
	if limits.IfElapsed == limit.Never {
		return text
	}
	return text + "; due in " + limit.Format(interval(limits, last)-told(last))
}

// wanted tells the interval.
func wanted(limits Limits, last Last) string {
	text := "IfElapsed is " + limit.Format(limits.IfElapsed)
	if last.FromStart && limits.IfElapsed > 0 && limits.IfElapsed != limit.Never {
		text += " less " + limit.Format(fromStartSlack(limits.IfElapsed))
	}
	return text
}

// told is the age in whole seconds, so that the figures of a sentence add up.
func told(last Last) time.Duration { return last.Age.Truncate(time.Second) }

// DueIn is the time until IfElapsed has passed; 0 if, and only if, it has.
func DueIn(limits Limits, last Last) time.Duration {
	switch {
	case Due(limits, last):
		return 0
	case limits.IfElapsed == limit.Never:
		return limit.Never
	}
	return interval(limits, last) - last.Age
}

func completed(last Last) string {
	switch {
	case !last.Completed:
		return "never completed"
	case last.Future:
		return "the last lock lies in the future"
	case last.Age < 0:
		return "completed since the pass began"
	}
	if last.FromStart {
		return "started " + limit.Format(told(last)) + " ago"
	}
	return "completed " + limit.Format(told(last)) + " ago"
}

func busy(limits Limits, active Active) string {
	switch {
	case active.Empty:
		return "the lock is empty, perhaps being written"
	case active.Owner == Ancestor:
		return "the atom is running this very program"
	case active.Owner == Waiter:
		return "others wait for it"
	case active.Owner == Untouched:
		return "the lock has only a pid, which lives"
	}
	text := Running(limits, active)
	switch {
	case !spared(limits, active):
	case active.Work != "":
		text += ", and it works (" + active.Work + ")"
	default:
		text += ", and it is not known to be idle"
	}
	return text
}

// Running describes the age of the active lock, the limit in force and its source.
func Running(limits Limits, active Active) string {
	expireAfter, source := InForce(limits, active)
	text := "running for " + limit.FormatAge(active.Age) + ", " + LimitText(Expiry(limits, active), source)
	if source != None && (limits.Source == None || expireAfter != limits.ExpireAfter || source != limits.Source) {
		text += " (its owner's)"
	}
	return text
}

// LimitText describes a limit and its source.
func LimitText(expireAfter time.Duration, source Source) string {
	switch {
	case source == None:
		return "no ExpireAfter"
	case source == Learned && expireAfter == limit.Never:
		return "no ExpireAfter learned yet"
	case source == Learned:
		return "the learned ExpireAfter is " + limit.Format(expireAfter)
	}
	return "ExpireAfter is " + limit.Format(expireAfter)
}
