package locker

import (
	"time"

	"adlock/lib/learn"
	"adlock/lib/policy"
	"adlock/lib/record"
)

// Lesson returns what the release of a lock with this record teaches; nil: nothing, as the owner learns no
// limit, the run failed or was ended early, or its end is unknown. A successful run teaches its runtime. A run
// that was ended at its limit, by its supervisor or as a newcomer asked, teaches that (learn.State.Ended).
func (r ReleaseRequest) Lesson(own record.Record) learn.Lesson {
	held := own.Held()
	switch {
	case !own.Learn, r.Withdraw, r.Untold:
	case r.Expired, r.Asked && held >= own.ExpireAfter:
		return func(s *learn.State) { s.Ended(held) }
	case r.Asked, r.NoStamp:
	case r.Signal == "" && r.Status.Value == 0:
		return func(s *learn.State) { s.Succeeded(held) }
	}
	return nil
}

// LessonOfEnding returns what the atom learns if this newcomer has ended the owner by force at that age. nil:
// nothing, as the owner learns no limit, or had not reached its own when an explicit one ended it.
func (r *Request) LessonOfEnding(owner *record.Record, age time.Duration) learn.Lesson {
	if !owner.Learn || r.Limits.Source != policy.Learned && age < owner.ExpireAfter {
		return nil
	}
	return func(s *learn.State) { s.Ended(age) }
}

// LessonOfAsking returns what the atom learns from the number of requests that were denied as too soon after it
// was last taken (AskedTooSoon). nil: nothing, as it learns no IfElapsed or there is no runlog.
func (rec Recorder) LessonOfAsking(r *Request, since time.Time) learn.Lesson {
	if !r.Auto.IfElapsed || rec.Log == nil {
		return nil
	}
	tooSoon := rec.AskedTooSoon(r.Atom, since)
	return func(s *learn.State) { s.Asked(tooSoon) }
}
