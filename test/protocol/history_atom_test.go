package protocol

import (
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"
)

// slack is the most that the clocks of a history differ: the 10 ms of /proc/uptime and the
// coarse clock of mtimes, at both ends.
const slack = 50 * time.Millisecond

// The operations of the model. A release is two operations, because other contenders may see the
// stamp before the lock is gone; so is a takeover.
type kind string

const (
	opTakeover kind = "takeover" // stamp for a dead owner; nothing if the atom is free
	opTake     kind = "take"     // the attempt has the lock
	opCut      kind = "cut"      // a takeover and a take by a newcomer that was killed before its job began
	opStamp    kind = "stamp"    // the last lock says: completed
	opUnlink   kind = "unlink"   // the lock is gone
	opDie      kind = "die"      // no process of the owner lives
	opBusy     kind = "busy"     // denied
	opTooSoon  kind = "too-soon" // denied
)

// operation is one step of an attempt.
type operation struct {
	kind     kind
	attempt  string
	elapsed  time.Duration // IfElapsed
	from, to time.Duration // it happened between these two times
	maybe    bool          // it was cut short: it may not have happened at all
	excused  bool          // busy, but perhaps only a newcomer's second look held the lock
}

func (o operation) String() string {
	text := fmt.Sprintf("%s by %s, at %.3f to %.3f s", o.kind, o.attempt, o.from.Seconds(), o.to.Seconds())
	if o.maybe {
		text += ", perhaps"
	}
	return text
}

// state is the state of one atom.
type state struct {
	owner   string // an attempt; "": free
	dead    bool   // the owner is dead
	stamped bool   // the owner has stamped the last lock and must still unlink the lock
	taker   string // the attempt that has stamped for the dead owner

	completed bool
	from, to  time.Duration // the interval of the completion
}

// model of one atom, free and never completed at first.
var model = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{state{}} },
	Step: func(s, input, _ any) []any {
		now, o := s.(state), input.(operation)
		next, possible := now.after(o)
		switch {
		case possible && o.maybe && next != now:
			return []any{now, next}
		case possible:
			return []any{next}
		case o.maybe:
			return []any{now}
		}
		return nil
	},
}).ToModel()

// after returns the state after the operation, and whether it is possible.
func (s state) after(o operation) (state, bool) {
	mine := s.owner == o.attempt
	switch o.kind {
	case opTakeover:
		if s.owner == "" {
			return s, true
		}
		possible := s.dead && s.mayBeDue(o)
		s.taker = o.attempt
		return s.completedAt(o), possible
	case opTake:
		possible := s.owner == "" && s.mayBeDue(o) || s.dead && s.taker == o.attempt
		s.owner, s.dead, s.stamped, s.taker = o.attempt, false, false, ""
		return s, possible
	case opCut:
		// This is one step: no contender finds a state between the two dead owners.
		possible := (s.owner == "" || s.dead) && s.mayBeDue(o)
		if s.dead {
			s = s.completedAt(o)
		}
		s.owner, s.dead, s.stamped, s.taker = o.attempt, true, false, ""
		return s, possible
	case opStamp:
		s.stamped = true
		return s.completedAt(o), mine
	case opUnlink:
		possible := mine && s.stamped
		s.owner, s.dead, s.stamped, s.taker = "", false, false, ""
		return s, possible
	case opDie:
		s.dead = true
		return s, mine
	case opBusy:
		return s, s.owner != "" || o.excused
	case opTooSoon:
		return s, s.mayBeTooSoon(o)
	}
	return s, false
}

func (s state) completedAt(o operation) state {
	s.completed, s.from, s.to = true, o.from, o.to
	return s
}

// mayBeDue: IfElapsed may have passed between the earliest time of the completion and the
// latest of the operation.
func (s state) mayBeDue(o operation) bool {
	return !s.completed || o.elapsed == 0 || o.to-s.from >= o.elapsed-slack
}

func (s state) mayBeTooSoon(o operation) bool {
	return s.completed && o.elapsed > 0 && o.from-s.to < o.elapsed+slack
}
