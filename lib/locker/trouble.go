package locker

import (
	"errors"
	"iter"
	"time"

	"adlock/lib/fault"
	"adlock/lib/hook"
	"adlock/lib/limit"
	"adlock/lib/runlog"
)

// keptOut reports that the newcomer belongs to the job whose lock, in by, denies it. Such a start cannot succeed.
func (rec Recorder) keptOut(e runlog.Event, by *View) {
	e.Kind, e.Status = runlog.NotRun, runlog.Some(fault.StatusDenied)
	e.Owner, e.OwnerNode, e.OwnerToken = by.Record.Owner.PID, by.Node, by.Record.Token
	owner := processOn(e.Owner, e.OwnerNode)
	why := "it was started from within the job of " + owner
	if e.PID == e.Owner {
		why = owner + ", which asks for it, has the lock itself"
	}
	e.Reason = joined(e.Reason, why)
	rec.append(e)
	rec.tell(hook.NotRun, e, "not run: "+e.Reason)
}

// NotRun reports that the job is not run because of the error why. It does not also report an unwritable runlog in dir.
// If why is nil, a denial or a usage error, or the verdict is Stuck, NotRun only returns why.
func (rec Recorder) NotRun(r *Request, dir string, o Outcome, why error) error {
	kind := fault.KindOf(why)
	if why == nil || o.Verdict == Stuck || kind == fault.Denied || kind == fault.Usage {
		return why
	}
	e := r.notRun(why)
	if rec.Log != nil && rec.Log.Dir == dir {
		rec.Log.FirstTrouble()
	}
	age, due := rec.awayFor(e)
	if due {
		e.Age = age
	}
	rec.append(e)
	text := "not run: " + e.Reason
	switch {
	case !due || rec.othersTold(e):
	case age.Value > 0:
		rec.tellHook(hook.NotRun, e, text+"; no job could use this store for "+limit.FormatAge(age.Value))
	default:
		rec.tellHook(hook.NotRun, e, text)
	}
	return &fault.Error{Kind: kind, Object: titleOf(e), Err: errors.New(text)}
}

// Refused logs that the newcomer's options or settings were refused. The caller reports why.
func (rec Recorder) Refused(r *Request, why error) {
	rec.Log.FirstTrouble()
	rec.append(r.notRun(why))
}

func (r *Request) notRun(why error) runlog.Event {
	e := r.event(runlog.NotRun)
	e.Status, e.Reason = runlog.Some(fault.StatusOf(why)), fault.OneLine(why.Error())
	return e
}

// awayFor returns how long the store has kept all jobs from running here with the status of e. due is true if the hook
// is to be notified: at first, after an hour, and each time age has doubled. A lock directory is due, and has no age.
func (rec Recorder) awayFor(e runlog.Event) (age runlog.Opt[time.Duration], due bool) {
	if rec.Log == nil || rec.Log.Store == "" {
		return age, true
	}
	for told := range rec.toldAway(e) {
		age := time.Since(told.Time) + told.Age.Value
		return runlog.Some(age), age >= max(time.Hour, 2*told.Age.Value)
	}
	return runlog.Some[time.Duration](0), true
}

// othersTold reports whether the hook was notified of the same failure of this store less than a minute
// before e. Of the jobs that cron starts in one minute, only the first one starts the hook.
func (rec Recorder) othersTold(e runlog.Event) bool {
	own := false
	for told := range rec.toldAway(e) {
		if own {
			return time.Since(told.Time) < time.Minute
		}
		own = told.PID == e.PID
	}
	return false
}

// toldAway yields the failures of this store since its last answer, the newest first: only those that have the status
// of e and of which the hook was notified. (An event without a notification has no age.)
func (rec Recorder) toldAway(e runlog.Event) iter.Seq[runlog.Event] {
	return func(yield func(runlog.Event) bool) {
		if rec.Log == nil || rec.Log.Store == "" {
			return
		}
		for seen := range rec.Log.Newest(noticeBytes) {
			switch {
			case seen.Store != rec.Log.Store || seen.Verdict == string(Paused):
			case seen.Kind == runlog.NotRun && seen.Status == e.Status && seen.Age.Set:
				if !yield(seen) {
					return
				}
			case seen.Kind == runlog.Acquire, seen.Kind == runlog.Deny, seen.Kind == runlog.Release:
				return
			}
		}
	}
}
