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

// idleHolds is how long the newcomer relies on having seen a job idle. (A job that it saw work counts as working for
// as long as the shortest watch takes.)
const idleHolds = 10 * time.Second

type watched struct {
	idle.Verdict
	token string        // of the owner's acquisition
	at    time.Duration // boottime
}

func (w watched) holds(token string, d time.Duration) bool {
	return w.token == token && process.Boottime()-w.at < d
}

// MayEnd reports whether the expired owner in v may be ended. At a learned limit the answer is yes only
// if the newcomer has just seen the job idle for a whole watch. MayEnd is called again under the guard.
func (r *Request) MayEnd(v *View) bool {
	return !policy.WatchFirst(r.Limits, v.Active) || r.watched.Idle > 0 && r.watched.holds(v.Record.Token, idleHolds)
}

// WatchLength returns how long a job of the atom is watched before a learned limit may end it.
func (r *Request) WatchLength() time.Duration { return idle.Length(r.Learned.Typical()) }

// LateError says that an owner has passed a learned limit and has to be watched before it is ended. Before
// the watch, the newcomer gives up what it holds.
type LateError struct {
	View
	Decision policy.Decision
	Held     func() bool    // reports whether the lock is still that owner's
	Watcher  func() Watcher // returns another newcomer that watches the job

	// Stuck returns the outcome if the job cannot be ended from here.
	Stuck func(why error) (Outcome, error)
}

// Watcher is a newcomer that watches whether a job works.
type Watcher struct {
	PID   int       // 0: unknown, or there is none
	Since time.Time // when its watch began
}

func (e *LateError) Error() string { return e.Decision.Reason() }

// WatchFirst returns the outcome of attempt, which tries to take the atom. After a LateError the newcomer
// watches the job and, if it is idle or gone, attempts again. dir is the open lock directory.
//
// The newcomer holds nothing while it watches. What may happen during a watch or after it:
//   - the owner releases the atom: the watch is over within a second; or the owner dies: the next sample shows that;
//   - another owner follows: it has another token, so MayEnd is false for it;
//   - the job begins to work after the last sample: it may be ended, as with any limit;
//   - this newcomer is killed: the kernel frees the flock on the file that gave it the turn to watch. The next
//     newcomer finds that file, and reports the owner as overdue: perhaps no newcomer lives long enough to
//     watch the job to the end;
//   - this newcomer is stopped after the watch: what it has seen does not count any more (idleHolds);
//   - this newcomer is stopped during the watch: another one watches too, and reports the owner.
func (rec Recorder) WatchFirst(r *Request, dir int, attempt func() (Outcome, error)) (Outcome, error) {
	for {
		if r.Flock.IsAwaited() { // otherwise the kernel could give this newcomer the file while it waits for the atom
			return r.fileTaken(), nil
		}
		o, err := attempt()
		if err != nil || o.Verdict != Acquired {
			r.Flock.Free()
		}
		var late *LateError
		if !errors.As(err, &late) {
			return o, err
		}
		o, err = rec.watch(r, late, dir)
		if err != nil || o.Verdict != "" {
			return o, err
		}
	}
}

// watch watches the job unless another newcomer does. The verdict is empty if the job was idle, ended or lost its lock.
func (rec Recorder) watch(r *Request, late *LateError, dir int) (Outcome, error) {
	v := &late.View
	if r.watched.Work != "" && r.watched.holds(v.Record.Token, idle.Shortest) {
		return r.works(late), nil
	}
	done, cut, err := idle.Turn(dir, r.Atom.Name().LookLock(), func() bool { return r.standsStill(late.Watcher()) })
	switch {
	case err != nil:
		return Outcome{}, fault.Wrap("lock directory", err)
	case done == nil:
		return r.busy(late, watchedByAnother), nil
	}
	defer done()
	if cut {
		o := r.busy(late, "an earlier watch of it was cut short")
		o.cut = true
		rec.SeeOverdue(r, &o)
	}
	r.showWatch(v)
	defer r.StatusLine.Clear()
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
	case verdict.Work != "" && OwnerOf(v.Job) == policy.Gone: // the sign of work was the end of the job
	case verdict.Work != "":
		return r.works(late), nil
	case verdict.Idle == 0 && readable(asker):
		return r.busy(late, "it was not watched to the end"), nil
	}
	return Outcome{}, nil
}

const watchGrace = time.Minute

const watchedByAnother = "another newcomer watches whether it works"

// standsStill reports whether a newcomer will not end its watch: it is stopped, or its watch began too long
// ago (the newcomer may be frozen, or on another machine).
func (r *Request) standsStill(w Watcher) bool {
	still, _ := process.Still(w.PID)
	return still || !w.Since.IsZero() && time.Since(w.Since) > r.WatchLength()+watchGrace
}

// ForeseeWatch returns d, or Busy if d needs a watch and the newcomer w is already watching the job.
func (r *Request) ForeseeWatch(d policy.Decision, w Watcher) policy.Decision {
	if d.Step != policy.Expire || !policy.WatchFirst(r.Limits, d.Active) || w.PID == 0 || r.standsStill(w) {
		return d
	}
	return d.Because(policy.Busy, running(r, d.Active, watchedByAnother))
}

func running(r *Request, owner policy.Active, why string) string {
	return policy.Running(r.Limits, owner) + ", and " + why
}

func (r *Request) works(late *LateError) Outcome {
	o := r.busy(late, "it works ("+r.watched.Work+")")
	o.work = r.watched.Work
	return o
}

func (r *Request) busy(late *LateError, why string) Outcome {
	return r.Denied(late.Decision.Because(policy.Busy, running(r, late.Active, why)), &late.View)
}

// idleOf returns how long the job in v was seen idle; 0 if it was not watched.
func (r *Request) idleOf(v *View) time.Duration {
	if r.watched.token == v.Record.Token {
		return r.watched.Idle
	}
	return v.Active.Idle
}

func (r *Request) showWatch(v *View) {
	began, who := time.Now(), processOn(v.Record.Owner.PID, v.Node)
	r.StatusLine.Show(func() string {
		return Title(r.Atom) + ": watching whether " + who + " works: " + limit.FormatAge(time.Since(began)) + " of " + limit.Format(r.WatchLength().Round(time.Second))
	})
}
