package locker

import (
	"time"

	"adlock/lib/learn"
	"adlock/lib/policy"
	"adlock/lib/record"
)

// Lesson returns what the release of a lock with this record teaches. A successful run teaches its runtime. A run
// that was ended at its limit, by its supervisor or as a newcomer asked, teaches how long it ran (learn.State.Ended).
// It returns nil if the owner learns no limit, or the run failed, was ended early or withdrawn, or its end is unknown.
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

// LessonOfEnding returns what the atom learns if this newcomer has ended the owner by force at that age. The result
// is nil if the owner learns no limit, or if an explicit limit ended the owner before it reached its own limit.
func (r *Request) LessonOfEnding(owner *record.Record, age time.Duration) learn.Lesson {
	if !owner.Learn || r.Limits.Source != policy.Learned && age < owner.ExpireAfter {
		return nil
	}
	return func(s *learn.State) { s.Ended(age) }
}

// LessonOfAsking returns what the atom learns from the number of requests that were denied as too soon after it
// was last taken (askedTooSoon). The result is nil if the atom learns no IfElapsed, or if there is no runlog.
func (rec Recorder) LessonOfAsking(r *Request, since time.Time) learn.Lesson {
	if !r.Auto.IfElapsed || rec.Log == nil {
		return nil
	}
	tooSoon := rec.askedTooSoon(r.Atom, since)
	return func(s *learn.State) { s.Asked(tooSoon) }
}
