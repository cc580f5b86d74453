package locker

import (
	"errors"
	"time"

	"adlock/lib/fault"
	"adlock/lib/idle"
	"adlock/lib/killer"
	"adlock/lib/limit"
	"adlock/lib/policy"
	"adlock/lib/process"
)

// idleHolds is how long the newcomer relies on having seen a job idle: after that the job may
// have resumed. A job that was seen at work is left alone for as long as the shortest watch.
const idleHolds = 10 * time.Second

// watched is the result of a newcomer's watch of an owner's job.
type watched struct {
	idle.Verdict
	token string        // of the owner's acquisition
	at    time.Duration // boottime
}

func (w watched) holds(token string, d time.Duration) bool {
	return w.token == token && process.Boottime()-w.at < d
}

// MayEnd tells whether the expired owner in v may be ended: past a learned limit only if the
// newcomer has just watched its job be idle (policy.WatchFirst). It is asked again under the
// guard.
func (r *Request) MayEnd(v *View) bool {
	return !policy.WatchFirst(r.Limits, v.Active) || r.watched.Idle > 0 && r.watched.holds(v.Record.Token, idleHolds)
}

// WatchLength is how long a job of the atom is watched before a learned limit ends it.
func (r *Request) WatchLength() time.Duration { return idle.Length(r.Learned.Typical()) }

// LateError says that the owner of the lock in View has expired by a learned limit, and has to be
// watched before it is ended. The newcomer gives up what it holds first.
type LateError struct {
	View
	Decision policy.Decision
	Held     func() bool                  // the lock is still that owner's
	Stuck    func(error) (Outcome, error) // the outcome if the job cannot be ended from here
}

func (e *LateError) Error() string { return e.Decision.Reason() }

// WatchFirst returns the outcome of an attempt to take the atom; an attempt that fails by a
// LateError is repeated after a watch in which the job was idle. dir is the lock directory.
//
// The newcomer holds nothing while it watches, neither a lock nor a guard. What may happen
// meanwhile, and what follows:
//   - the owner releases the atom, or dies: the watch is over within a second;
//   - another owner follows: it has another token, so MayEnd does not hold for it;
//   - a newcomer with an explicit limit ends the owner: the same;
//   - the job begins to work after the last look: it may be ended, as with any limit;
//   - this newcomer is killed: the kernel gives its turn back, and it held nothing else;
//   - this newcomer is stopped after the watch: its verdict expires.
func (rec Recorder) WatchFirst(r *Request, dir int, attempt func() (Outcome, error)) (Outcome, error) {
	for {
		o, err := attempt()
		var late *LateError
		if !errors.As(err, &late) {
			return o, err
		}
		o, err = r.watch(late, dir)
		if err != nil || o.Verdict != "" {
			return o, err
		}
	}
}

// watch is idle.Job.Watch, by one newcomer at a time. With an empty verdict the job was idle, or
// its lock has gone.
func (r *Request) watch(late *LateError, dir int) (Outcome, error) {
	v := &late.View
	if r.watched.Work != "" && r.watched.holds(v.Record.Token, idle.Shortest) {
		return r.works(late), nil
	}
	done, err := idle.Turn(dir, r.Atom.Name().LookLock())
	switch {
	case err != nil:
		return Outcome{}, fault.Wrap("lock directory", err)
	case done == nil:
		return r.busy(late, "another newcomer watches whether it works"), nil
	}
	defer done()
	r.showWatch(v)
	defer r.Line.Clear()
	asker := Waiting{asker: r.Asker}.Asker()
	job := idle.Job{
		Length:  r.WatchLength(),
		Members: func() ([]process.Entry, error) { return killer.Members(v.Job) },
		Over:    func() bool { return !late.Held() || readable(asker) },
	}
	verdict, err := job.Watch()
	switch {
	case errors.Is(err, killer.ErrAncestor):
		return r.Denied(late.Decision.With(policy.Busy), v), nil
	case err != nil:
		return late.Stuck(err)
	}
	r.watched = watched{verdict, v.Record.Token, process.Boottime()}
	switch {
	case verdict.Work != "" && OwnerOf(v.Job) == policy.Gone: // what was seen was its end
	case verdict.Work != "":
		return r.works(late), nil
	case verdict.Idle == 0 && readable(asker):
		return r.busy(late, "it was not watched to the end"), nil
	}
	return Outcome{}, nil
}

// works is the denial if the owner is overdue, and works.
func (r *Request) works(late *LateError) Outcome {
	o := r.busy(late, "it works ("+r.watched.Work+")")
	o.work = r.watched.Work
	return o
}

func (r *Request) busy(late *LateError, why string) Outcome {
	return r.Denied(late.Decision.Because(policy.Busy, policy.Running(r.Limits, late.Active)+", and "+why), &late.View)
}

// idleOf is how long the owner in v was seen idle; 0: it was not watched.
func (r *Request) idleOf(v *View) time.Duration {
	if r.watched.token == v.Record.Token {
		return r.watched.Idle
	}
	return v.Active.Idle
}

func (r *Request) showWatch(v *View) {
	began, who := process.Boottime(), processOn(v.Record.Owner.PID, v.Node)
	r.Line.Show(func() string {
		return Title(r.Atom) + ": watching whether " + who + " works: " + limit.FormatAge(process.Boottime()-began) + " of " + limit.Format(r.WatchLength().Round(time.Second))
	})
}
