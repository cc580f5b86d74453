package locker

import (
	"errors"

	"adlock/lib/fault"
	"adlock/lib/hook"
	"adlock/lib/runlog"
)

// keptOut: the newcomer was denied by its own job, as e says, which holds the lock in by. Each such
// start is denied, so this is no normal denial.
func (rec Recorder) keptOut(e runlog.Event, by *View) {
	e.Kind, e.Status = runlog.NotRun, runlog.Some(fault.StatusDenied)
	e.Owner, e.OwnerNode, e.OwnerToken = by.Record.Owner.PID, by.Node, by.Record.Token
	e.Reason = joined(e.Reason, "it was started from within the job of "+processOn(e.Owner, e.OwnerNode))
	rec.append(e)
	rec.tell(hook.NotRun, e, "not run: "+e.Reason)
}

// NotRun: nothing could be locked in the directory dir because of why, so the job is not run. The
// returned error says that; if why is a denial or a usage error, it is returned unchanged, and
// nothing is reported. If the runlog is in dir and cannot be written, that is not reported too.
func (rec Recorder) NotRun(r *Request, dir string, o Outcome, why error) error {
	kind := fault.KindOf(why)
	if why == nil || o.Verdict == Stuck || kind == fault.Denied || kind == fault.Usage {
		return why
	}
	e := r.event(runlog.NotRun)
	e.Status, e.Reason = runlog.Some(fault.StatusOf(why)), fault.OneLine(why.Error())
	if rec.Log != nil && rec.Log.Dir == dir {
		rec.Log.FirstTrouble()
	}
	rec.append(e)
	text := "not run: " + e.Reason
	rec.tellHook(hook.NotRun, e, text)
	return &fault.Error{Kind: kind, Object: titleOf(e), Err: errors.New(text)}
}

// Refused: the newcomer's options or settings were refused because of why, and the job is not run.
// The caller reports why; that the runlog cannot be written is not reported too.
func (rec Recorder) Refused(r *Request, why error) {
	e := r.event(runlog.NotRun)
	e.Status, e.Reason = runlog.Some(fault.StatusOf(why)), fault.OneLine(why.Error())
	rec.Log.FirstTrouble()
	rec.append(e)
}
