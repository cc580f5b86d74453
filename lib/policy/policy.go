// Package policy decides what a newcomer does about an atom: figure 3 of the 1997 paper, corrected, as
// one pure function (Decide). It reads no clock, no file and no process table.
package policy

import (
	"strconv"
	"time"

	"adlock/lib/limit"
)

// DefaultPause is the time between the signals of an ending. Limits have no default: a person sets them.
const DefaultPause = 3 * time.Second

// FutureSlack is how far in the future a last lock may lie and still count: clocks differ, and some are coarse.
const FutureSlack = 2 * time.Second

// emptyGrace is how long an empty lock counts as being written.
const emptyGrace = time.Minute

// Limits are the limits that a newcomer asks for.
type Limits struct {
	IfElapsed   time.Duration // how long after its last completion (or start: Last.FromStart) the atom may run again
	ExpireAfter time.Duration // how long the owner may run
	Source      Source        // of ExpireAfter; None: the newcomer has no ExpireAfter
}

// OfOwner returns the limit for the newcomer's own lock; limit.Never and None if there is no limit, or for --replace.
func (l Limits) OfOwner() (expireAfter time.Duration, source Source) {
	if l.ExpireAfter == 0 || l.Source == None {
		return limit.Never, None
	}
	return l.ExpireAfter, l.Source
}

// Source says where a limit comes from.
type Source string

const (
	None    Source = ""        // no limit is set
	Learned Source = "learned" // from the atom's past runs, because a person set auto
	Filed   Source = "file"    // from a settings file; counts only if neither side has a limit from elsewhere
	Said    Source = "said"    // set by an option or a variable
)

// Warning returns a warning if ExpireAfter is below IfElapsed, against the paper's rule of thumb, else "".
func (l Limits) Warning() string {
	if l.Source != None && l.ExpireAfter < l.IfElapsed && l.IfElapsed != limit.Never {
		return "ExpireAfter " + limit.Format(l.ExpireAfter) + " is below IfElapsed " + limit.Format(l.IfElapsed) +
			": a job that still runs at the next start will be ended then"
	}
	return ""
}

// Terms are what a newcomer asks for.
type Terms struct {
	Limits
	Shared bool // the newcomer is a reader: several readers may hold the atom at once
	Slots  int  // at most this many atoms of the program run at once; 0: any number
	Tick   Tick // the atom runs at most once in this tick; zero: no tick

	Program   string // for messages
	Semaphore string // for messages: the --name whose runs the slots count; "": the slots count the atoms of Program
}

// ForReader returns the terms on which a reader's lock is judged: IfElapsed concerns only the last lock.
func (t Terms) ForReader() Terms {
	return Terms{Limits: Limits{ExpireAfter: t.ExpireAfter, Source: t.Source}}
}

// ForSlot returns the terms on which a slot is judged: a newcomer never ends the owner of a slot to get it.
func (t Terms) ForSlot() Terms {
	return Terms{Limits: Limits{ExpireAfter: limit.Never, Source: Said}}
}

// Situation is what the newcomer found. Fields that were not read are zero.
type Situation struct {
	Last    Last
	Active  Active
	Readers []Active // the readers' locks
	Slots   []Active // the program's slots, except the newcomer's own

	TickUsed bool // the newcomer's tick was claimed
	Pause    Pause
}

// Decision is a newcomer's next step, and the lock that this step concerns.
type Decision struct {
	Step   Step
	Active Active // the lock that decided: the active lock or a reader's lock
	Reader int    // the index of the reader's lock that decided; -1: none did

	terms Terms
	last  Last
	used  bool // the newcomer asks for a tick that was claimed
	pause Pause
	why   string // a reason that does not follow from the situation; "": none
}

// Last is what the last lock says.
type Last struct {
	Completed bool          // the atom has completed before
	Age       time.Duration // since the last completion; negative if the pass clock is earlier
	FromStart bool          // Age counts from the start of the last run
	Future    bool          // the completion lies in the future by the real clock, so it does not count
	Damaged   bool          // the content cannot be read, so it does not count
	Newer     bool          // a run that replaced another, and was asked for after this newcomer's, has completed
}

// Owner is the known state of the active lock's owner.
type Owner int

const (
	Lives     Owner = iota
	Gone            // provably dead, and so are all known processes of its job
	Orphaned        // provably dead, but a process of its job lives
	Unknown         // cannot be checked from here: another pid namespace, another host
	Ancestor        // the newcomer itself or one of its ancestors
	Untouched       // lives, and must not be signalled: a lock with only a pid
	Waiter          // not an owner but an earlier waiter for the atom
)

// Active is what the active lock says.
type Active struct {
	Held     bool          // there is an active lock
	Empty    bool          // the lock has no content
	Wrecked  bool          // Empty, and not being written: damaged by a loss of power before this boot
	Age      time.Duration // by the pass clock, if any; if Empty by the real clock, as the owner may still be writing the lock
	Owner    Owner
	Asked    time.Duration // the ExpireAfter that the owner asked for
	Source   Source        // of Asked; None: the owner asked for none
	Patience time.Duration // how long after the limit newcomers leave the ending to the supervisor (--enforce)
	Remote   bool          // the lock is in a store: only the owner's machine can observe the job
	Node     string        // in a store: the owner's machine
	Idle     time.Duration // in a store: how long the job was idle when the locksmith watched it
	Work     string        // in a store: the sign of work that the locksmith found, in words
	Entering bool          // a reader holds the lock for a moment, until the reader has a lock of its own
	Newer    bool          // the owner's run was asked for after this newcomer's
}

// Step is a newcomer's next step.
type Step int

const (
	TooSoon Step = iota // denied: the last lock is too young
	Busy                // denied: the atom runs, an earlier waiter is first, or a run asked for later has begun
	Acquire             // nothing is in the way
	Expire              // end the owner carefully, then replace its lock
	Reclaim             // the owner is dead: replace its lock
	Unempty             // clear the empty lock, then decide again
	Stuck               // the lock has expired, but the owner cannot be ended from here
	Full                // denied: as many atoms of the program run as the newcomer allows
	Paused              // denied: a person has paused the atom, or the host
)

// Granted reports whether the newcomer gets the atom unless the situation changes.
func (s Step) Granted() bool {
	return s == Acquire || s == Expire || s == Reclaim || s == Unempty
}

// Decide returns the next step. The first denial wins: pause, tick, IfElapsed, active lock, readers, slots.
func Decide(t Terms, s Situation) Decision {
	d := Decision{Step: decide(t.Limits, s.Last, s.Active), Active: s.Active, Reader: -1, terms: t, last: s.Last}
	if s.Pause.Denies() {
		d.Step, d.pause = Paused, s.Pause
		return d
	}
	if d.used = t.Tick.Asked() && s.TickUsed; d.used {
		d.Step = TooSoon
		return d
	}
	if s.Active.Entering && t.Shared && d.Step == Busy {
		d.Step, d.Active = Acquire, Active{} // the holder is a reader too, and about to move to a reader's lock
	}
	if d.Step.Granted() && !t.Shared {
		d.amongReaders(s.Readers)
	}
	if d.Step.Granted() && t.Slots > 0 && taken(t, s.Slots) >= t.Slots {
		d.Step = Full
	}
	return d
}

// amongReaders lets the first reader that denies the newcomer decide. If none does, the first one that has to
// be ended or cleared decides, unless the owner of the active lock already has to be ended or cleared.
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

func taken(t Terms, slots []Active) (n int) {
	for _, slot := range slots {
		if slot.Held && !decide(t.ForSlot().Limits, Last{}, slot).Granted() {
			n++
		}
	}
	return n
}

func decide(limits Limits, last Last, active Active) Step {
	if !Due(limits, last) {
		return TooSoon
	}
	if last.Newer && limits.Preempt() {
		return Busy
	}
	if !active.Held {
		return Acquire
	}
	if active.Empty {
		if active.Age.Abs() < emptyGrace && !active.Wrecked {
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

// Due reports whether IfElapsed has passed. That is so if IfElapsed is 0, the atom never completed, or the last lock
// lies in the future. In all other cases an IfElapsed of limit.Never never passes.
func Due(limits Limits, last Last) bool {
	if limits.IfElapsed == 0 || !last.Completed || last.Future {
		return true
	}
	return limits.IfElapsed != limit.Never && last.Age >= interval(limits, last)
}

// fromStartSlack is how much IfElapsed is shortened if it counts from the start: cron may start a job a little
// early or late, and a daily job must not be denied for that. The day on which summer time begins has 23 hours.
func fromStartSlack(ifElapsed time.Duration) time.Duration {
	slack := min(30*time.Second, max(time.Second, (ifElapsed/10).Truncate(time.Second)))
	if isDays(ifElapsed) {
		slack += time.Hour
	}
	return slack
}

func interval(limits Limits, last Last) time.Duration {
	if last.FromStart {
		return limits.IfElapsed - fromStartSlack(limits.IfElapsed)
	}
	return limits.IfElapsed
}

// InForce returns the limit in force, and its source. The newcomer's explicit limit wins. Otherwise the
// owner's wins if it is explicit or learned, unless the newcomer has a longer learned one. An owner's limit
// from a settings file wins only if the newcomer has none. The result is limit.Never and None if neither has a limit.
func InForce(limits Limits, active Active) (expireAfter time.Duration, source Source) {
	switch {
	case limits.Source == Said, limits.Source != None && (active.Source == None || active.Source == Filed),
		limits.Source == Learned && limits.ExpireAfter != limit.Never && limits.ExpireAfter > active.Asked:
		return limits.ExpireAfter, limits.Source
	case active.Source != None:
		return active.Asked, active.Source
	}
	return limit.Never, None
}

// Expiry is the age at which the active lock expires for this newcomer: the limit in force, plus the owner's
// Patience. A limit of 0 (--replace) has no patience: the owner does not enforce it. No limit ends an Untouched owner.
func Expiry(limits Limits, active Active) time.Duration {
	expiry, _ := InForce(limits, active)
	switch {
	case active.Owner == Untouched:
		return limit.Never
	case expiry == 0:
		return 0
	}
	return min(expiry, limit.Never-active.Patience) + active.Patience // the sum must not overflow
}

// Expired reports whether the lock has reached Expiry; false for --replace if the owner's run was asked for later.
func Expired(limits Limits, active Active) bool {
	return max(0, active.Age) >= Expiry(limits, active) && !outdated(limits, active) // the pass clock may be earlier
}

// Preempt reports whether a newcomer with these limits ends an owner at once (--replace).
func (l Limits) Preempt() bool { return l.Source != None && l.ExpireAfter == 0 }

func outdated(limits Limits, active Active) bool {
	expireAfter, _ := InForce(limits, active)
	return expireAfter == 0 && active.Newer && !active.Empty
}

// OnlyIdle reports whether an expired owner is ended only if a watch finds its job idle, as a learned limit
// cannot distinguish a long run from a hang.
func OnlyIdle(limits Limits, active Active) bool {
	_, source := InForce(limits, active)
	return source == Learned
}

// WatchFirst reports whether the newcomer must watch the job before ending it. In a store the owner's locksmith does.
func WatchFirst(limits Limits, active Active) bool { return OnlyIdle(limits, active) && !active.Remote }

// spared reports whether an expired owner in a store may go on, because no watch found its job idle.
func spared(limits Limits, active Active) bool {
	return active.Remote && active.Idle == 0 && OnlyIdle(limits, active) && Expired(limits, active)
}

// Notice is the age at which a run is reported as overdue.
type Notice struct {
	After time.Duration
	Said  bool // true: set by a person; false: learned
}

// Overdue reports whether the owner has passed its notice. A learned notice counts only if there is no limit,
// or if a learned limit, which ends only an idle job, has expired.
func Overdue(limits Limits, active Active, notice Notice) bool {
	if !active.Held || active.Empty || active.Owner == Gone || active.Owner == Waiter || active.Age < notice.After {
		return false
	}
	return notice.Said || Expiry(limits, active) == limit.Never || OnlyIdle(limits, active) && Expired(limits, active)
}

// With returns the decision about the same lock, but with another step.
func (d Decision) With(step Step) Decision {
	d.Step = step
	return d
}

// Because is With, plus why: a reason that does not follow from the situation, for Reason and Figures.
func (d Decision) Because(step Step, why string) Decision {
	d.why = why
	return d.With(step)
}

// Preempts reports whether the newcomer ends an owner at once (--replace).
func (d Decision) Preempts() bool { return d.terms.Limits.Preempt() }

// Outdated reports whether the newcomer is denied for good, because a run that was asked for later runs or has run.
func (d Decision) Outdated() bool {
	return d.Step == Busy && (d.last.Newer && d.Preempts() || outdated(d.terms.Limits, d.Active))
}

var words = [...]string{
	TooSoon: "too soon", Busy: "busy", Full: "full", Paused: "paused", Stuck: "stuck",
	Acquire: "free", Reclaim: "free", Unempty: "free", Expire: "expired",
}

// Reason describes the step and the reasons for it.
func (d Decision) Reason() string { return words[d.Step] + ": " + d.Figures() }

// Figures is Reason without its first words.
func (d Decision) Figures() string {
	switch {
	case d.Step == Full:
		return full(d.terms)
	case d.Step == Paused:
		return d.pause.Figures()
	case d.TickUsed():
		return d.terms.Tick.used()
	case d.why != "" && d.Step == Stuck:
		return stuck(d.terms.Limits, d.Active, d.why)
	case d.why != "":
		return d.why
	case d.Outdated() && d.last.Newer:
		return "a start that was asked for later has run"
	}
	text := figuresOf(d.Step, d.terms.Limits, d.last, d.Active)
	if d.terms.Tick.Asked() && d.Step.Granted() {
		text += "; not run yet " + d.terms.Tick.in()
	}
	return text
}

func full(t Terms) string {
	switch {
	case t.Semaphore != "" && t.Slots == 1:
		return "at most 1 run of " + t.Semaphore + " at once"
	case t.Semaphore != "":
		return "at most " + strconv.Itoa(t.Slots) + " runs of " + t.Semaphore + " at once"
	case t.Slots == 1:
		return "an atom of " + t.Program + " is running"
	}
	return strconv.Itoa(t.Slots) + " atoms of " + t.Program + " are running"
}

func figuresOf(step Step, limits Limits, last Last, active Active) string {
	switch step {
	case TooSoon:
		return tooSoon(limits, last)
	case Busy:
		return busy(limits, active)
	case Acquire:
		return completed(last) + ", " + wanted(limits, last) + ", " + LimitText(limits.OfOwner())
	case Expire:
		text := Running(limits, active) + "; it would be "
		if WatchFirst(limits, active) {
			return text + "watched first, and ended if it is idle"
		}
		return text + "ended"
	case Reclaim:
		return "the owner is dead; its lock would be replaced"
	case Unempty:
		if active.Wrecked {
			return "the lock is damaged, and from before this boot; it would be cleared"
		}
		return "the lock is empty and " + limit.FormatAge(active.Age) + " old; it would be cleared"
	}
	return stuck(limits, active, "its owner cannot be checked from here")
}

func stuck(limits Limits, active Active, why string) string {
	return Running(limits, active) + ", and " + why
}

func tooSoon(limits Limits, last Last) string {
	text := completed(last) + ", " + wanted(limits, last)
	if limits.IfElapsed == limit.Never {
		return text
	}
	return text + "; due in " + limit.Format(interval(limits, last)-wholeAge(last))
}

func wanted(limits Limits, last Last) string {
	text := "IfElapsed is " + limit.Format(limits.IfElapsed)
	if last.FromStart && limits.IfElapsed > 0 && limits.IfElapsed != limit.Never {
		text += " less " + limit.Format(fromStartSlack(limits.IfElapsed))
	}
	return text
}

// wholeAge returns whole seconds, so that the figures in a sentence add up.
func wholeAge(last Last) time.Duration { return last.Age.Truncate(time.Second) }

// DueIn returns the time until IfElapsed has passed: 0 only if IfElapsed has passed, limit.Never if it never passes.
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
	case last.Damaged:
		return "the last lock is damaged"
	case !last.Completed:
		return "never completed"
	case last.Future:
		return "the last lock lies in the future"
	case last.Age < 0:
		return "completed since the pass began"
	}
	if last.FromStart {
		return "started " + limit.Format(wholeAge(last)) + " ago"
	}
	return "completed " + limit.Format(wholeAge(last)) + " ago"
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
	case outdated(limits, active):
		text += ", and it was asked for later than this start"
	case !spared(limits, active):
	case active.Work != "":
		text += ", and it works (" + active.Work + ")"
	default:
		text += ", and it is not known to be idle"
	}
	return text
}

// Running describes the age of the active lock and the limit in force, without the owner's Patience.
func Running(limits Limits, active Active) string {
	expireAfter, source := InForce(limits, active)
	text := "running for " + limit.FormatAge(active.Age)
	if active.Node != "" {
		text += " on " + active.Node
	}
	text += ", " + LimitText(expireAfter, source)
	owners := source != None && (expireAfter != limits.ExpireAfter || source != limits.Source)
	switch enforced := active.Patience > 0 && expireAfter == active.Asked; {
	case owners && enforced:
		text += " (its owner's, which enforces it)"
	case owners:
		text += " (its owner's)"
	case enforced:
		text += " (its owner enforces it)"
	}
	return text
}

func LimitText(expireAfter time.Duration, source Source) string {
	switch {
	case source == None:
		return "no ExpireAfter"
	case source == Learned && expireAfter == limit.Never:
		return "no ExpireAfter learned yet"
	case source == Learned:
		return "the learned ExpireAfter is " + limit.Format(expireAfter)
	case source == Filed:
		return "ExpireAfter is " + limit.Format(expireAfter) + " (settings file)"
	}
	return "ExpireAfter is " + limit.Format(expireAfter)
}
