package locker

import (
	"cmp"
	"errors"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/hook"
	"adlock/lib/killer"
	"adlock/lib/learn"
	"adlock/lib/limit"
	"adlock/lib/policy"
	"adlock/lib/runlog"
	"adlock/lib/sysfile"
)

// About the last 10,000 lines of the runlog are read, but only in four cases: an owner has run for learn.Floor or
// its notice, its lock is from a backup, a locked file is in the way, or a store fails.
const (
	noticeBytes = 4 << 20
	noticeRuns  = 100 // more runs would add nothing
)

// aDay is the age at which a pause is first reported. It is also the least time between two reports of one owner by
// newcomers, or by its own supervisor.
const aDay = 24 * time.Hour

// Overdue is an owner that has passed its notice (policy.Overdue), or whose lock is from a backup.
type Overdue struct {
	Notice policy.Notice
	View   // its lock

	limited bool                      // a limit is in force for it
	Late    bool                      // its learned limit has passed, which ends only an idle job
	work    string                    // what it was seen doing after that limit
	runs    learn.State               // the run times of its atom
	told    runlog.Opt[time.Duration] // its age when a newcomer last reported it
	own     bool                      // its own supervisor has reported it to the hook
}

// Overdue returns the owner of the lock in v if it is overdue, or if it cannot be checked and the lock is from a
// backup; nil otherwise, and without a runlog. limits are the caller's; said is the explicit notice (0: none).
func (rec Recorder) Overdue(limits policy.Limits, v View, said time.Duration) *Overdue {
	o := &Overdue{View: v, Notice: policy.Notice{After: cmp.Or(said, learn.Floor), Said: said > 0}}
	restored := v.Restored && v.Active.Owner == policy.Unknown
	if rec.Log == nil || !restored && !policy.Overdue(limits, v.Active, o.Notice) {
		return nil
	}
	inForce, _ := policy.InForce(limits, v.Active)
	o.limited = inForce != limit.Never
	o.Late = policy.OnlyIdle(limits, v.Active) && policy.Expired(limits, v.Active)
	rec.recall(o)
	switch {
	case o.Notice.Said:
	case o.Late:
		o.Notice.After = inForce
	default:
		o.Notice.After = o.runs.Notice()
	}
	if !restored && !policy.Overdue(limits, v.Active, o.Notice) {
		return nil
	}
	return o
}

func (rec Recorder) recall(o *Overdue) {
	var took []time.Duration
	for e := range rec.Log.Newest(noticeBytes) {
		switch {
		case e.Kind == runlog.Release && rec.isOf(&e, o.Record.Atom) && e.Signal == "" && e.Status.Value == 0:
			took = append(took, e.Duration.Value)
		case e.OwnerToken == o.Record.Token && e.Owner == o.Record.Owner.PID:
			o.work = cmp.Or(o.work, e.Work)
			switch {
			case !e.Overdue.Set:
			case e.PID == e.Owner: // an event of the owner's own supervisor
				o.own = true
			case !o.told.Set:
				o.told = e.Overdue
			}
		}
		if len(took) == noticeRuns {
			break
		}
	}
	for i := len(took) - 1; i >= 0; i-- { // the oldest first
		o.runs.Succeeded(took[i])
	}
}

func (rec Recorder) isOf(e *runlog.Event, a atom.Atom) bool {
	return e.Store == rec.Log.Store && e.Operand == a.Operand && e.Operator == a.Operator && e.Program == a.Program && e.Host == a.Host
}

func (o *Overdue) Text() string {
	if o.Restored && o.Active.Owner == policy.Unknown {
		return "a backup has brought this lock back: it is of " + processOn(o.Record.Owner.PID, o.Node) + " on another machine, " + limit.FormatAge(o.Active.Age) + " old"
	}
	if o.File != "" {
		return "overdue: " + fileHeld(o.File, o.Record.Owner.PID) + ", for " + limit.FormatAge(o.Active.Age) + " at least"
	}
	text := "overdue: "
	if o.work != "" {
		text = "overdue, and works (" + o.work + "): "
	}
	if o.Active.Owner == policy.Orphaned {
		text += "the job of " + processOn(o.Record.Owner.PID, o.Node) + ", which is dead,"
	} else {
		text += processOn(o.Record.Owner.PID, o.Node)
	}
	text += " has run for " + limit.FormatAge(o.Active.Age)
	if o.Notice.Said {
		return text + ", its notice is " + limit.Format(o.Notice.After)
	}
	switch {
	case o.runs.Runs > 0:
		text += ", its runs take " + limit.Format(o.runs.Typical().Round(time.Second)) + " (" + strconv.Itoa(o.runs.Runs) + " known)"
	case !o.Late:
		text += ", and how long its runs take is not known"
	}
	if o.Late {
		text += ", its learned limit is " + limit.Format(o.Notice.After)
	}
	return text
}

// Remedy returns advice on how to end the wait for the owner. sameAtom says that a newcomer's limit can end that owner.
func (rec Recorder) Remedy(o *Overdue, sameAtom bool) string {
	lock := o.Record.Lock()
	stop := "to end it: " + rec.Command("stop", lock)
	if uid := cmp.Or(o.Whose, os.Getuid()); uid != 0 {
		stop += " (as the user " + sysfile.UserName(uid) + ")"
	}
	if o.Node != "" { // in a store
		a := o.Record.Atom
		stop = "to end it: adlock run --replace --host " + fault.Quoted(a.Host) + " --program " + fault.Quoted(a.Program) +
			" --operator " + fault.Quoted(a.Operator) + " --name " + fault.Quoted(a.Operand) + " -- true"
	}
	switch {
	case o.Active.Owner == policy.Ancestor:
		return "it started this process"
	case o.File != "":
		return "no limit of this run ends it: find out what it does (fuser -v, as its user or root)"
	case o.Active.Owner == policy.Untouched:
		return "its lock has only a pid: end it by hand"
	case o.Active.Owner == policy.Unknown:
		return rec.IfDead(lock)
	case !sameAtom:
		return stop
	case o.limited:
		return o.healthy() + stop
	case o.Node != "":
		return "a limit ends it: --expire-after (ADLOCK_EXPIRE_AFTER)"
	}
	return o.healthy() + stop + "; a limit would: --expire-after (ADLOCK_EXPIRE_AFTER)"
}

func (o *Overdue) healthy() string {
	if o.Notice.Said {
		return ""
	}
	d := (2 * o.Active.Age).Truncate(time.Hour) + time.Hour
	return "if it is healthy: --notice " + limit.Format(d) + " (ADLOCK_NOTICE); "
}

// IfDead returns the advice for a lock whose owner cannot be checked.
func (rec Recorder) IfDead(lock atom.File) string {
	return "if you know that it is dead: " + rec.Command("clear", lock)
}

// Cure returns the advice for a lock whose job cannot be ended because of why.
func (rec Recorder) Cure(lock atom.File, why error) string {
	switch {
	case errors.Is(why, killer.ErrAlive): // KILL does not end a process that waits in the kernel, and no advice does
		return ""
	case errors.Is(why, unix.EPERM) && os.Geteuid() != 0:
		return "root may end it"
	}
	return rec.IfDead(lock)
}

// Command returns the command line that applies the verb to the lock. It names the lock by its path if the
// reader of the message may have another lock directory.
func (rec Recorder) Command(verb string, lock atom.File) string {
	called := lock.Called()
	if rec.Log != nil && rec.Log.Locks != "" && rec.Log.Store == "" {
		called = fault.Quoted(rec.Log.Locks + "/" + lock.String())
	}
	return "adlock " + verb + " " + called
}

// FindOverdue returns the owner that denies the newcomer the atom if it has to be reported as overdue now;
// otherwise nil. It notes in the outcome at which age the owner was last reported.
func (rec Recorder) FindOverdue(r *Request, o *Outcome) *Overdue {
	if o.Verdict != Busy && o.Verdict != Full || !o.inWay.Active.Held {
		return nil
	}
	if o.IsFile() && rec.Log != nil {
		rec.seeFile(r, o)
	}
	if o.inWay.Active.Age < r.calm[o.inWay.Record.Token] {
		return nil
	}
	limits, said := r.Limits, cmp.Or(r.Notice, o.inWay.Record.Notice)
	if o.Verdict == Full {
		limits, said = policy.Limits{}, o.inWay.Record.Notice
	}
	if o.IsFile() || o.Verdict == Full && policy.Expired(limits, o.inWay.Active) { // the owner's own limit has not ended it
		limits = r.Terms().ForSlot().Limits
	}
	r.calm = map[string]time.Duration{o.inWay.Record.Token: o.inWay.Active.Age + time.Minute}
	found := rec.Overdue(limits, o.inWay, said)
	if found == nil || found.Late && o.work == "" && !o.cut && !found.Notice.Said { // the owner may be ended in a moment
		return nil
	}
	if o.told = found.told; o.work != "" {
		found.work = o.work
	}
	if told := found.told; told.Set && found.Active.Age < told.Value+max(told.Value, aDay) { // the next report is due at twice the age, a day later at least
		return nil
	}
	return found
}

func (rec Recorder) SeeOverdue(r *Request, o *Outcome) {
	if found := rec.FindOverdue(r, o); found != nil {
		rec.TellOverdue(r, o, found)
	}
}

// TellOverdue logs and prints the overdue owner, and notifies the hook unless the owner's own supervisor has.
func (rec Recorder) TellOverdue(r *Request, o *Outcome, found *Overdue) {
	e := r.event(runlog.Overdue)
	e.Verdict = string(o.Verdict)
	e.Owner, e.OwnerNode, e.OwnerToken = found.Record.Owner.PID, found.Node, found.Record.Token
	e.Age, e.Overdue = runlog.Some(found.Active.Age), runlog.Some(found.Active.Age)
	e.Work, e.Reason = found.work, found.Text()+"; "+rec.Remedy(found, o.Verdict == Busy)
	if o.Verdict == Full {
		e.Reason = Title(found.Record.Atom) + " is " + e.Reason
	}
	o.told = e.Overdue
	rec.append(e)
	fault.Warn(titleOf(e), e.Reason)
	if !found.own {
		rec.tellHook(hook.Overdue, e, e.Reason)
	}
}

// OwnOverdue logs, and notifies the hook, that this process's run is overdue, if it is: without a newcomer, no
// other process does so. It returns the age at which to call it again.
func (rec Recorder) OwnOverdue(r *Request, token string, age time.Duration) (next time.Duration) {
	v := r.ownView(token, age, 0)
	found := rec.Overdue(r.Limits, *v, r.Notice)
	if found == nil {
		return age + learn.LeastNotice
	}
	e := r.event(runlog.Overdue)
	e.Token, e.Owner, e.OwnerToken = token, v.Record.Owner.PID, token
	e.Age, e.Overdue, e.Reason = runlog.Some(age), runlog.Some(age), found.Text()
	rec.append(e)
	rec.tellHook(hook.Overdue, e, e.Reason)
	return age + max(age, aDay)
}
