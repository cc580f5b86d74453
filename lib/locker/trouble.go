package locker

import (
	"errors"

	"adlock/lib/fault"
	"adlock/lib/hook"
	"adlock/lib/record"
	"adlock/lib/runlog"
)

// IsTrouble tells whether Take has failed because of the lock directory: it is full, read-only,
// missing or another user's. A denial, or an owner that cannot be ended, does not count.
func IsTrouble(o Outcome, err error) bool {
	switch fault.KindOf(err) {
	case fault.IO, fault.CannotCreate, fault.NotPermitted:
		return err != nil && o.Verdict != Stuck
	}
	return false
}

// NotRun: nothing could be locked in the directory dir because of why, so the job is not run. The
// returned error says that; if why is a denial or a usage error, it is returned unchanged, and
// nothing is reported.
func (rec Recorder) NotRun(r *Request, dir string, o Outcome, why error) error {
	if kind := fault.KindOf(why); why == nil || o.Verdict == Stuck || kind == fault.Denied || kind == fault.Usage {
		return why
	}
	e := r.event(runlog.NotRun)
	e.Status = runlog.Some(fault.StatusOf(why))
	return &fault.Error{Kind: fault.KindOf(why), Object: titleOf(e), Err: rec.trouble(hook.NotRun, e, "not run", dir, why)}
}

// RunsUnlocked: because of trouble with the directory dir the job runs without a lock; the record
// belongs to no lock.
func (rec Recorder) RunsUnlocked(r *Request, dir string, own record.Record, why error) {
	e := r.event(runlog.Unlocked)
	e.Token = own.Token
	fault.Report(&fault.Error{Object: titleOf(e), Err: rec.trouble(hook.Unlocked, e, "runs unlocked", dir, why)})
}

// ShareTrouble suppresses the report that the runlog cannot be written if it is in the directory
// dir, whose trouble is already reported.
func (rec Recorder) ShareTrouble(dir string) {
	if rec.Log != nil && rec.Log.Dir == dir {
		rec.Log.FirstTrouble()
	}
}

// trouble logs the consequence of trouble with the directory dir, and tells the hook.
func (rec Recorder) trouble(kind hook.Kind, e runlog.Event, what, dir string, why error) error {
	e.Reason = fault.OneLine(why.Error())
	rec.ShareTrouble(dir)
	rec.append(e)
	text := what + ": " + e.Reason
	rec.tellHook(kind, e, text)
	return errors.New(text)
}
