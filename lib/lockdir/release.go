package lockdir

import (
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/killer"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/lib/sysfile"
)

// guardWait is how long to wait for a guard: a mere check of the lock is over by then. Tests change it.
var guardWait = 200 * time.Millisecond

// Release stamps the last lock (not with NoStamp or Withdraw), then removes the active lock or reader's lock. If the
// lock is gone or another's, it changes nothing and returns an error (lost, 75), or nil with Again or Withdraw.
// If another process guards the lock, the error contains locker.ErrGuarded; locker.IsEnded is true if that process
// is ending the owner. If a recorded process besides the owner may live, the lock stays (77), unless r.Alone.
func (l *Locker) Release(r locker.ReleaseRequest) error {
	active, err := l.Dir.Active(r.Name)
	if r.AtOnce && (err != nil || !owns(&r, active) || active.Record.Slots > 0 || active.Record.Learn) {
		if err == nil {
			active.Close()
		}
		return locker.ErrNotAtOnce
	}
	if err == nil && !owns(&r, active) || errors.Is(err, fs.ErrNotExist) {
		if reader, found := l.reader(&r); !errors.Is(found, fs.ErrNotExist) {
			if err == nil {
				active.Close()
			}
			active, err = reader, found
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return l.lost(&r, nil, errors.New("the lock is gone"))
	}
	if err != nil {
		return err
	}
	defer active.Close()
	if !owns(&r, active) {
		if err := active.Untold(&r); err != nil {
			return err
		}
		return l.lost(&r, active, locker.ErrLost)
	}
	switch signalled, err := guardOwn(&r, active); {
	case r.AtOnce && err != nil:
		return locker.ErrNotAtOnce
	case errors.Is(err, locker.ErrGuarded) && (signalled || l.isEnded(&r, active.Record)):
		return l.EndedByForce(r, active.Record, active.GuardHolder())
	case errors.Is(err, locker.ErrGuarded):
		return active.ReportGuarded(err)
	case errors.Is(err, locker.ErrLost):
		return l.lost(&r, active, err)
	case err != nil:
		return err
	}
	if !r.Alone {
		if err := active.Survived(); err != nil {
			return err
		}
	}
	if err := l.leaveReaders(&r, active); err != nil {
		return err
	}
	if lesson := r.Lesson(active.Record); lesson != nil {
		l.learn(r.Name, active.Record, lesson)
	}
	var failed error // the lock is removed all the same: a lock without a job would be worse than a run too soon
	if r.NoStamp || r.Withdraw {
		failed = l.Dir.RemoveTick(r.Name, r.Tick)
	} else {
		failed = l.stamp(r.Name, active, (&locker.Request{Atom: active.Record.Atom}).NewMemory())
	}
	if r.AtOnce && failed != nil {
		return locker.ErrNotAtOnce // the lock stays for the helper that reports this
	}
	slots, err := l.releaseSlots(active.Record)
	defer closeAll(slots)
	failed = errors.Join(failed, err)
	if err := active.Remove(); err != nil {
		return errors.Join(failed, err)
	}
	l.Released(r, active.Record, failed)
	return failed
}

// guardOwn acquires the guard of the lock that is to be released. A newcomer that keeps the guard for longer
// than a check takes is ending the owner, or is stopped. A helper that releases for a script belongs to the
// job: once it gets a signal too (signalled), it stops waiting.
func guardOwn(r *locker.ReleaseRequest, active *lockfile.Active) (signalled bool, err error) {
	err = active.Guard(0)
	if r.AtOnce || !errors.Is(err, locker.ErrGuarded) {
		return false, err
	}
	signals := make(chan os.Signal, 2)
	if r.ForScript {
		signal.Notify(signals, unix.SIGINT, unix.SIGTERM)
	}
	for left := max(guardWait, r.GuardWait); left > 0 && len(signals) == 0; left -= guardLook {
		if err = active.Guard(guardLook); !errors.Is(err, locker.ErrGuarded) {
			return false, err
		}
	}
	return len(signals) > 0, err
}

const guardLook = 20 * time.Millisecond

// leaveReaders removes the reader's lock of an owner that still has the active lock too, because its helper died
// between linking the reader's lock and removing the active lock.
func (l *Locker) leaveReaders(r *locker.ReleaseRequest, active *lockfile.Active) error {
	if active.File.Kind == atom.ReaderLock || !active.Record.Shared {
		return nil
	}
	reader, err := l.reader(r)
	if err != nil {
		return sysfile.IgnoreMissing(err)
	}
	defer reader.Close()
	if err := reader.GuardReporting(guardWait); err != nil {
		return err
	}
	return reader.Remove()
}

func (l *Locker) stamp(name atom.Name, run *lockfile.Active, fresh record.Memory) error {
	return l.Dir.Marked(name, func() error {
		return errors.Join(l.rememberStart(name, run, fresh), l.Dir.Stamp(name, fresh))
	})
}

// rememberStart records when the run was asked for. That time becomes the start in the last lock if IfElapsed counts
// from the start (FromStart), or if the last lock already has one. After a run of --replace it also becomes the newest
// start, which denies the atom to earlier requests. A damaged last lock is made anew.
func (l *Locker) rememberStart(name atom.Name, run *lockfile.Active, fresh record.Memory) error {
	last, err := l.lastOr(name, fresh)
	if err != nil {
		return err
	}
	started := run.Record.FromStart || !last.Memory.Started.IsZero()
	if started {
		last.Memory.Started = run.Modified().Add(-run.Record.Asked)
	}
	if run.Record.Replaces {
		last.Memory.Newest = run.Record.Start().Later(last.Memory.Newest)
	}
	if !started && !run.Record.Replaces && !last.Damaged {
		return nil
	}
	return l.Dir.Remember(name, last.Completed, last.Memory)
}

func (l *Locker) lastOr(name atom.Name, fresh record.Memory) (record.Last, error) {
	last, err := l.Dir.Last(name)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && last.Damaged:
		last.Memory, err = fresh, nil
	case err == nil && last.Memory.Atom == (atom.Atom{}) && fresh.Atom != (atom.Atom{}): // rewrite has replaced a damaged last lock
		last.Memory.Atom, last.Damaged = fresh.Atom, true
	}
	return last, err
}

func (l *Locker) lost(r *locker.ReleaseRequest, active *lockfile.Active, why error) error {
	if r.Again || r.Withdraw {
		return nil
	}
	a, _ := r.Name.Atom()
	var found *record.Record
	if active != nil {
		found = &active.Record
	}
	return l.Lost(l.Dir.Path(r.Name.ActiveLock()), *r, a, found, why)
}

func owns(r *locker.ReleaseRequest, active *lockfile.Active) bool {
	return active.Content == record.Full && r.Owns(active.Record)
}

// Clear removes an active lock or a reader's lock that a person has judged stale, and its owner's slots, without a
// stamp. It refuses (77) while a process of the job is known to live; it only reports one that the mark alone shows.
func (l *Locker) Clear(lock atom.File) error {
	path := l.Dir.Path(lock.String())
	active, err := l.Dir.Lock(lock)
	if errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.Usage, path, "no such lock: nothing to clear")
	}
	if err != nil {
		return err
	}
	defer active.Close()
	switch err := active.GuardReporting(guardWait); {
	case errors.Is(err, locker.ErrLost):
		return fault.New(fault.Denied, path, err.Error())
	case err != nil:
		return err
	}
	if err := process.Passing(); err != nil { // whether the owner lives is unknown
		return fault.Wrap(path, err)
	}
	if alive := active.InUse(); alive != "" {
		return fault.New(fault.NotPermitted, path, alive)
	}
	rest, err := active.Job().Marked()
	if err != nil {
		return fault.Wrap(path, err)
	}
	slots, failed := l.removeSlots(active.Record)
	defer closeAll(slots)
	if errors.Is(failed, locker.ErrGuarded) {
		if active.Record.Owner.Life() != process.Dead { // the slot of an owner that cannot be checked would stay for ever
			return failed
		}
		failed = nil
	}
	if err := active.Remove(); err != nil {
		return errors.Join(failed, err)
	}
	if len(rest) > 0 {
		fault.Report(fault.New(fault.Denied, path, "is cleared, and processes of its job live: "+fault.Numbers(rest)))
	}
	cleared := active.Record
	if cleared.Atom == (atom.Atom{}) { // the lock was empty or damaged
		cleared.Atom, _ = lock.Name.Atom()
	}
	l.Cleared(cleared, "")
	return failed
}

// Prune removes each last lock that has not changed for at least older, with the ticks and the queue of its
// atom, unless the atom is paused, or has an active lock or readers. It returns the names of the pruned atoms.
func (l *Locker) Prune(older time.Duration) ([]atom.Name, error) {
	files, err := l.Dir.Files(atom.LastLock, atom.Tick)
	if err != nil {
		return nil, err
	}
	var pruned []atom.Name
	for _, f := range files {
		if f.Kind != atom.LastLock {
			continue
		}
		removed, err := l.prune(f.Name, older, files)
		if removed {
			pruned = append(pruned, f.Name)
		}
		if err != nil {
			return pruned, err
		}
	}
	return pruned, nil
}

func (l *Locker) prune(name atom.Name, older time.Duration, files []atom.File) (removed bool, err error) {
	if unused, err := l.unused(name, older); !unused {
		return false, err
	}
	active, err := l.Dir.Active(name)
	if err == nil {
		active.Close()
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	_, err = l.underOwn(name, func() error {
		if unused, err := l.unused(name, older); !unused {
			return err
		}
		err = errors.Join(l.Dir.RemoveTicks(files, name, func(time.Duration, int) bool { return true }), l.Dir.RemoveLine(name), l.Dir.RemoveLast(name))
		removed = err == nil
		return err
	})
	return removed, err
}

// unused reports whether the last lock is there and old, and the atom has neither a pause nor a reader.
func (l *Locker) unused(name atom.Name, older time.Duration) (bool, error) {
	changed, err := l.Dir.LastChanged(name)
	if err != nil || time.Since(changed) < older {
		return false, sysfile.IgnoreMissing(err)
	}
	last, err := l.Dir.Last(name)
	if err != nil || last.Memory.Pause.Policy().On {
		return false, sysfile.IgnoreMissing(err)
	}
	readers, err := l.Dir.Readers(name)
	return err == nil && len(readers) == 0, err
}

// Stop ends the job that holds the lock (an active lock or a reader's), as a newcomer ends an expired job. It first
// waits for the guard, for as long as an ending takes. With leave the lock stays for the next newcomer; otherwise Stop
// stamps the last lock, and removes the lock and its slots. It returns fs.ErrNotExist if the job has already ended.
func (l *Locker) Stop(r *locker.Request, lock atom.File, leave bool) error {
	active, err := l.Dir.Lock(lock)
	if err != nil {
		return err
	}
	v := view{active: active}
	defer v.close()
	switch err := active.GuardReporting(guardWait + 4*min(r.Pause, time.Hour)); {
	case errors.Is(err, locker.ErrLost):
		return fs.ErrNotExist
	case err != nil:
		return err
	case active.Content == record.Damaged:
		return damaged(active)
	case active.Content != record.Full: // the lock names no process that may be signalled
		return fault.New(fault.NotPermitted, active.Path(), "does not name its owner")
	}
	r.Atom = active.Record.Atom
	if v.setActive(locker.Moment{Real: time.Now()}); v.Active.Owner == policy.Gone {
		return fs.ErrNotExist
	}
	l.Stopping(r, &v.View)
	var unwritten *unwrittenError
	switch err := l.endJob(r, &v); {
	case errors.As(err, &unwritten):
		return err
	case errors.Is(err, killer.ErrAncestor):
		return &fault.Error{Kind: fault.NotPermitted, Object: active.Path(), Err: err}
	case err != nil:
		_, err = l.stuck(r, &v, err)
		return err
	case leave:
		return nil
	}
	err = l.free(r, active, true)
	l.Stopped(r, &v.View)
	return err
}

func (l *Locker) free(r *locker.Request, active *lockfile.Active, ended bool) (err error) {
	if ended {
		err = l.stamp(active.File.Name, active, r.NewMemory())
	}
	slots, failed := l.releaseSlots(active.Record)
	defer closeAll(slots)
	return errors.Join(err, failed, active.Remove())
}
