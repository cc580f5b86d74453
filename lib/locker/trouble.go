package locker

import (
	"errors"

	"adlock/lib/fault"
	"adlock/lib/hook"
	"adlock/lib/runlog"
)

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
