// Package unlocked is a locker over a lock directory for a job that has to run even if the
// directory cannot be used: it is full, read-only, missing or another user's. A full /var must not
// stop the job that cleans /var. The job then runs without a lock, and each such run is reported. A
// denial stays a denial: only trouble with the directory lets a job run unlocked.
//
// Two unlocked runs exclude each other, and so do an unlocked run and one with a lock, as far as
// possible without writing a file. The unlocked run takes an abstract socket name and, if it can
// open the last lock, flock(2) of that. Only then does it look at the active lock. A newcomer links
// its active lock, and only then tries that flock (lockdir.Locker.Take). An unlocked run U and a
// newcomer L, which can use the directory again, can meet as follows:
//   - L has linked its lock before U looks: U finds the lock's owner alive, and is denied;
//   - U has looked before L linked: U already had the flock, and L backs off;
//   - L has linked, and U has the flock and is about to be denied: L tries for a while, so that
//     not both are denied.
//
// U stamps the last lock, where it can, before it unlocks the flock, so that an L which gets the
// flock finds the stamp in its second look. While U runs, no newcomer replaces the last lock, as
// that needs the active lock. If a person removes the last lock, the socket name still keeps other
// unlocked runs away.
//
// L cannot detect a U that could not open the last lock, because there is none or the directory is
// another user's. No run can detect the job of a U that was ended by KILL: socket name and flock
// are free once the process is gone.
package unlocked

import (
	"errors"
	"io"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/hook"
	"adlock/lib/killer"
	"adlock/lib/lockdir"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/pause"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/lib/runlog"
	"adlock/lib/sysfile"
)

// Locker takes atoms in a lock directory; if that cannot be used, Take lets the job run without a
// lock. Each Locker is for one acquisition.
type Locker struct {
	locker.Locker // the directory's; after Take, that of an unlocked run
	recorder      locker.Recorder
	path          string
}

// Open opens the lock directory at path, as lockdir.Open does. Take deals with a failure to open
// it.
func Open(path string, log *runlog.Log, h *hook.Hook) *Locker {
	recorder := locker.Recorder{Log: log, Hook: h}
	l := &Locker{recorder: recorder, path: path}
	k, err := lockdir.Open(path, log)
	if err != nil {
		l.Locker = &run{Recorder: recorder, trouble: err}
		return l
	}
	k.Hook = h
	l.Locker = k
	return l
}

// Take is lockdir.Locker.Take. If that fails because of the directory, the outcome is Acquired
// without a lock, or a denial if the atom runs.
func (l *Locker) Take(r locker.Request) (locker.Outcome, error) {
	outcome, err := l.Locker.Take(r)
	if !locker.IsTrouble(outcome, err) {
		return outcome, err
	}
	l.recorder.ShareTrouble(l.path)
	u := &run{Recorder: l.recorder}
	outcome, failed := u.hold(l.path, &r, err)
	if failed != nil || outcome.Verdict != locker.Acquired {
		u.letGo()
		l.recorder.Denied(&r, outcome, failed, 0)
		return outcome, failed
	}
	u.own = r.Record()
	l.recorder.RunsUnlocked(&r, l.path, u.own, err)
	l.Locker = u
	outcome.Token, outcome.ExpireAfter, outcome.Watch = u.own.Token, r.Limits.ExpireAfter, r.WatchLength()
	return outcome, nil
}

// RecordSignal and Cancelled may be called by any goroutine, so they do not use the inner locker,
// which Take replaces.
func (l *Locker) RecordSignal(r *locker.Request, s killer.Signalled) { l.recorder.RecordSignal(r, s) }

// Cancelled is locker.Recorder.Cancelled.
func (l *Locker) Cancelled(r *locker.Request, signal string, waited time.Duration) {
	l.recorder.Cancelled(r, signal, waited)
}

// DryRun says what Take would do if lockdir.DryRun has failed because of the directory (trouble is
// its error).
func DryRun(path string, r *locker.Request, trouble error) (granted bool, reason string, err error) {
	u := &run{}
	defer u.letGo()
	outcome, err := u.hold(path, r, trouble)
	if err != nil {
		return false, "", err
	}
	if outcome.Verdict != locker.Acquired {
		return false, outcome.Reason, nil
	}
	return true, "runs unlocked: " + trouble.Error(), nil
}

// Holder is the pid of this user's process that runs the atom NAME without a lock; 0 if unknown.
func Holder(name atom.Name) int {
	pid, err := sysfile.AbstractHolder(socketName(name))
	if err != nil {
		return 0
	}
	return pid
}

// socketName contains the user, as users do not share atoms, and not the directory, which may
// have several names. NAME may be longer than a socket name allows, so it is shortened like a
// part of a NAME.
func socketName(name atom.Name) string {
	return "adlock-unlocked-" + strconv.Itoa(os.Geteuid()) + "-" + atom.Canonify(string(name))
}

// run is one run without a lock: a Locker that writes no lock.
type run struct {
	locker.Recorder
	trouble error // why there is no lock directory
	dir     *lockfile.Dir
	last    io.Closer // the last lock, under its flock
	socket  int       // 0: none
	own     record.Record
}

// hold takes the socket name and the flock, and looks at the atom. The outcome is Acquired, or a
// denial. With an error the job does not run: the atom's state cannot be known, or its owner would
// have to be ended first (then the error is trouble).
func (u *run) hold(path string, r *locker.Request, trouble error) (locker.Outcome, error) {
	name := r.Atom.Name()
	var err error
	if u.dir, err = lockfile.Open(path); err == nil {
		// If this run cannot flock the last lock, a newcomer with a lock cannot detect this run.
		if u.last, err = u.dir.HoldLast(name, unix.LOCK_EX); errors.Is(err, lockfile.ErrRunsUnlocked) {
			return locker.RunsUnlocked(Holder(name)), nil
		}
	}
	socket, holder, err := sysfile.TakeAbstract(socketName(name))
	switch {
	case err == unix.EADDRINUSE:
		return locker.RunsUnlocked(holder), nil
	case err != nil:
		return locker.Outcome{}, errors.Join(trouble, fault.Wrap("@"+socketName(name), err))
	}
	if u.socket = socket; u.dir == nil {
		host, err := pause.Host()
		if host.On {
			return r.Denied(policy.Decide(r.Terms(), policy.Situation{Pause: host}), &locker.View{Pause: host}), nil
		}
		return locker.Outcome{Verdict: locker.Acquired}, err
	}
	d, err := (&lockdir.Locker{Dir: u.dir}).Foresee(r)
	switch {
	case err != nil: // the state of the atom cannot be known
		return locker.Outcome{}, err
	case d.Step == policy.Expire || d.Step == policy.Stuck: // the owner lives, and would have to be ended
		return locker.Outcome{}, trouble
	case !d.Step.Granted():
		return r.Denied(d, &locker.View{}), nil
	}
	return locker.Outcome{Verdict: locker.Acquired}, nil
}

// letGo releases what hold has taken.
func (u *run) letGo() {
	if u.socket > 0 {
		unix.Close(u.socket)
	}
	if u.last != nil {
		u.last.Close() // it was opened for reading
	}
	if u.dir != nil {
		u.dir.Close()
	}
}

// Take fails: the lock directory could not be opened.
func (u *run) Take(locker.Request) (locker.Outcome, error) { return locker.Outcome{}, u.trouble }

// Release stamps the last lock if it can. A failure is not reported: the trouble already was.
func (u *run) Release(r locker.ReleaseRequest) error {
	if u.dir != nil && !r.NoStamp {
		_ = u.dir.Stamp(r.Name, record.Memory{})
	}
	u.letGo()
	u.Released(r, u.own, nil)
	return nil
}

// DryRun is never called.
func (u *run) DryRun(*locker.Request) (bool, string, error) { return false, "", u.trouble }

// RecordCommand writes nothing, as there is no lock.
func (u *run) RecordCommand(atom.Name, string, process.Identity) error { return nil }

// RecordMembers writes nothing.
func (u *run) RecordMembers(atom.Name, string, []process.Identity) error { return nil }

// RecordRest writes nothing.
func (u *run) RecordRest(atom.Name, string, []process.Identity) error { return nil }

// BeingEnded is false: there is no lock at which a newcomer could end the job.
func (u *run) BeingEnded(atom.Name, string) (bool, error) { return false, nil }

// Linger is false.
func (u *run) Linger(error, func() bool) bool { return false }
