// Package policy decides: figure 3 of the 1997 paper with its holes closed, as
// one pure function over what was found and what was asked for. It reads no
// clock, no file and no process table.
package policy

import (
	"time"

	"adlock/lib/limit"
)

// Defaults where nothing was said (CFEngine's).
const (
	DefaultIfElapsed   = time.Minute // adlock_get; `adlock run` and adlock_guard: 0
	DefaultExpireAfter = 2 * time.Hour
	DefaultPause       = 3 * time.Second
)

// FutureSlack is how far in the future a last lock may lie before it counts as
// invalid: coarse clocks and file servers differ by a little.
const FutureSlack = 2 * time.Second

// EmptyGrace is how long an empty lock is taken for one being written; one that
// lies further than this in the future is not being written either.
const EmptyGrace = time.Minute

// Limits are the newcomer's.
type Limits struct {
	IfElapsed   time.Duration // not sooner than this after the last completion
	ExpireAfter time.Duration // the owner may run this long
	Explicit    bool          // ExpireAfter was asked for: it may then shorten what the owner asked for
}

// Warning returns the paper's rule of thumb where the limits break it, else "".
func (l Limits) Warning() string {
	if l.ExpireAfter < l.IfElapsed && l.IfElapsed != limit.Never {
		return "ExpireAfter " + limit.Format(l.ExpireAfter) + " is below IfElapsed " + limit.Format(l.IfElapsed) +
			": every overrun will be ended at the next start"
	}
	return ""
}

// Last is what the last lock says.
type Last struct {
	Completed bool          // the atom has completed before
	Age       time.Duration // since then; negative where a fixed 'now' lies before it
	Future    bool          // it lies in the future by the real clock, and so means nothing
}

// Owner is what is known of the active lock's owner.
type Owner int

// The states of an owner.
const (
	Lives     Owner = iota
	Dead            // provably
	Orphaned        // dead, but its own process group still has living members
	Unknown         // cannot be checked from here: another pid namespace, another host
	Ancestor        // the newcomer itself or one of its ancestors
	Untouched       // lives, and must not be signalled: a lock with only a pid
)

// Active is what the active lock says.
type Active struct {
	Held     bool          // there is one
	Empty    bool          // it has no content
	Age      time.Duration // of an empty one by the real clock: whether it is being written no pass clock tells
	Owner    Owner
	Asked    time.Duration // the ExpireAfter that the owner asked for
	Patience time.Duration // its supervisor ends it by itself: wait this much longer
}

// Step is what a newcomer does next.
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
)

// Decide says what a newcomer with these limits does about these two locks.
func Decide(limits Limits, last Last, active Active) Step {
	if !Due(limits, last) {
		return TooSoon
	}
	if !active.Held {
		return Acquire
	}
	if active.Empty {
		if active.Age.Abs() < EmptyGrace {
			return Busy
		}
		return Unempty
	}
	expired := active.Age >= Expiry(limits, active)
	switch active.Owner {
	case Dead:
		return Reclaim
	case Lives, Orphaned:
		if expired {
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
	return limits.IfElapsed != limit.Never && last.Age >= limits.IfElapsed
}

// Expiry is the age at which the active lock expires for this newcomer, whose
// limit decides; but a default does not shorten what the owner asked for.
func Expiry(limits Limits, active Active) time.Duration {
	expiry := limits.ExpireAfter
	if !limits.Explicit {
		expiry = max(expiry, active.Asked)
	}
	return min(expiry, limit.Never-active.Patience) + active.Patience // never and longer is never
}

// Reason tells the step with the figures behind it, for --dry-run and the runlog.
func Reason(step Step, limits Limits, last Last, active Active) string {
	switch step {
	case TooSoon:
		return tooSoon(limits, last)
	case Busy:
		return "busy: " + busy(limits, active)
	case Acquire:
		return "free: " + completed(last) + ", IfElapsed is " + limit.Format(limits.IfElapsed)
	case Expire:
		return "expired: " + running(limits, active) + "; it would be ended"
	case Reclaim:
		return "free: the owner is dead; its lock would be replaced"
	case Unempty:
		return "free: the lock is empty and " + limit.Format(active.Age) + " old; it would be cleared"
	}
	return "stuck: " + running(limits, active) + ", and its owner cannot be checked from here"
}

func tooSoon(limits Limits, last Last) string {
	text := "too soon: " + completed(last) + ", IfElapsed is " + limit.Format(limits.IfElapsed)
	if limits.IfElapsed == limit.Never {
		return text
	}
	return text + "; due in " + limit.Format(DueIn(limits, last).Round(time.Second))
}

// DueIn is how long it is until IfElapsed has passed; 0 where it has, and only there.
func DueIn(limits Limits, last Last) time.Duration {
	switch {
	case Due(limits, last):
		return 0
	case limits.IfElapsed == limit.Never:
		return limit.Never
	}
	return limits.IfElapsed - last.Age
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
	return "completed " + limit.Format(last.Age) + " ago"
}

func busy(limits Limits, active Active) string {
	switch {
	case active.Empty:
		return "the lock is empty, perhaps being written"
	case active.Owner == Ancestor:
		return "the atom is running this very program"
	case active.Owner == Untouched:
		return "the lock has only a pid, which lives"
	}
	return running(limits, active)
}

func running(limits Limits, active Active) string {
	return "running for " + limit.Format(active.Age) + ", ExpireAfter is " + limit.Format(Expiry(limits, active))
}
