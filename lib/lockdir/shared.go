package lockdir

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"time"

	"adlock/lib/atom"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/record"
	"adlock/lib/sysfile"
)

// A reader takes the active lock like any newcomer, puts a lock of its own beside it, read.NAME.PID, and releases
// the active lock. A writer with the active lock ends expired readers, and backs off while another reader lives. So no
// reader's lock appears while a writer looks for them. A stream of readers can starve a writer.

// entering is how long readers wait for a reader that holds the active lock to put its reader's lock in place.
const entering = time.Second

func (l *Locker) read(r *locker.Request, name atom.Name, own record.Record, acquired locker.Outcome) (locker.Outcome, error) {
	if err := l.Dir.MarkRead(name); err != nil {
		return locker.Outcome{}, err
	}
	temp, err := l.Dir.TempLock(own)
	if err != nil {
		return locker.Outcome{}, err
	}
	defer temp.Discard()
	lock := atom.File{Kind: atom.ReaderLock, Name: name, Number: r.Owner.PID}
	err = temp.Link(lock.String())
	if !errors.Is(err, fs.ErrExist) {
		return acquired, err
	}
	// An earlier process had the owner's pid, or the owner is already a reader.
	_, outcome, err := l.clearReader(r, lock, temp, stamped)
	if err != nil || outcome.Verdict != locker.Acquired {
		return outcome, err
	}
	return acquired, temp.Link(lock.String())
}

// awaitNoReader clears dead readers, ends expired ones, and denies the atom if another lives. Then it checks the last
// lock, which a reader may have stamped just before its release, unless this newcomer has stamped it (stamped).
func (l *Locker) awaitNoReader(r *locker.Request, name atom.Name, temp *lockfile.TempFile, p phase) (locker.Outcome, error) {
	readers, err := l.Dir.Readers(name)
	if err != nil {
		return locker.Outcome{}, err
	}
	if r.AtOnce && len(readers) > 0 {
		return locker.Outcome{}, locker.ErrNotAtOnce
	}
	for _, lock := range readers {
		ended, outcome, err := l.clearReader(r, lock, temp, p)
		if err != nil || outcome.Verdict != locker.Acquired {
			return outcome, err
		}
		if ended {
			p = stamped
		}
	}
	return l.secondLook(r, name, temp, p)
}

// clearDeadReaders checks two random readers, and clears the dead: a writer, which clears them all, may never come.
func (l *Locker) clearDeadReaders(r *locker.Request, name atom.Name, temp *lockfile.TempFile) error {
	const looks = 2
	readers, err := l.Dir.Readers(name)
	if err != nil {
		return err
	}
	for n := range min(looks, len(readers)) {
		other := n + rand.IntN(len(readers)-n)
		readers[n], readers[other] = readers[other], readers[n]
		reader, err := l.Dir.Lock(readers[n])
		if err == nil {
			dead := reader.Content == record.Full && locker.OwnerIf(reader.Job(), reader.Named) == policy.Gone
			reader.Close()
			if dead { // a damaged lock stays: it denies writers the atom, and they report it
				var o locker.Outcome
				if _, o, err = l.clearReader(r, readers[n], temp, stamped); o.Verdict == locker.Stuck {
					err = nil // another reader's lock does not keep this reader out
				}
			}
		}
		if err = sysfile.IgnoreMissing(err); err != nil && !errors.Is(err, locker.ErrGuarded) {
			return err
		}
	}
	return nil
}

// clearReader removes the lock of a reader that is dead, or has expired and is ended first. For an ended reader
// (ended) it stamps the last lock. The verdict is Acquired if the lock is gone. The caller holds the active lock.
func (l *Locker) clearReader(r *locker.Request, lock atom.File, temp *lockfile.TempFile, p phase) (ended bool, outcome locker.Outcome, err error) {
	acquired := locker.Outcome{Verdict: locker.Acquired}
	v, d, err := l.lookAtReader(r, lock)
	if errors.Is(err, fs.ErrNotExist) {
		return false, acquired, nil
	}
	if err != nil {
		return false, locker.Outcome{}, err
	}
	defer v.close()
	switch {
	case d.Step == policy.Stuck:
		outcome, err = l.stuck(r, &v, v.active.Unchecked())
		return false, outcome, err
	case d.Step == policy.Unempty:
		if outcome, err = l.clearEmpty(r, &v); err == errAgain {
			return false, acquired, nil
		}
		return false, outcome, err
	case d.Step != policy.Reclaim && (d.Step != policy.Expire || r.LeaveExpired):
		return false, r.Denied(d, &v.View), nil
	case d.Step == policy.Expire && !r.MayEnd(&v.View):
		return false, locker.Outcome{}, l.late(r, &v, d)
	}
	switch outcome, err := guard(r, &v); {
	case err == errAgain:
		return false, acquired, nil // the reader has released it
	case err != nil || outcome.Verdict != "":
		return false, outcome, err
	}
	if outcome, err := l.secondLook(r, lock.Name, temp, p); err != nil || outcome.Verdict != locker.Acquired {
		return false, outcome, err
	}
	if outcome, err := r.FileBefore(&v.View, d.Step, l.Dir.JobsOfReaders); err != nil || outcome.Verdict != "" {
		return false, outcome, err
	}
	if d.Step == policy.Expire {
		if outcome, err := l.end(r, &v, d); err != nil || outcome.Verdict != "" {
			return false, outcome, err
		}
	}
	ended = d.Step == policy.Expire
	if err = l.free(r, v.active, ended); err == nil {
		outcome = acquired
	}
	if ended || err == nil {
		l.Replaced(r, d.Step, &v.View)
	}
	return ended, outcome, err
}

// lookAtReader decides what a newcomer does about a reader's lock; fs.ErrNotExist if gone. The caller closes the view.
func (l *Locker) lookAtReader(r *locker.Request, lock atom.File) (view, policy.Decision, error) {
	active, err := l.Dir.Lock(lock)
	if err != nil {
		return view{}, policy.Decision{}, err
	}
	if err := readable(active); err != nil {
		active.Close()
		return view{}, policy.Decision{}, err
	}
	v := view{active: active}
	v.setActive(r.Clock(time.Now()))
	v.Active.Newer = r.IsOlder(v.Record, v.Active.Age)
	return v, v.decide(r.Terms().ForReader()), nil
}

func readable(reader *lockfile.Active) error {
	if reader.Content != record.Full && reader.Content != record.Empty {
		return damaged(reader)
	}
	return nil
}

func (l *Locker) reader(r *locker.ReleaseRequest) (*lockfile.Active, error) {
	readers, err := l.Dir.Readers(r.Name)
	if err != nil {
		return nil, err
	}
	for _, lock := range readers {
		active, err := l.Dir.Lock(lock)
		if err == nil && owns(r, active) {
			return active, nil
		}
		if err == nil {
			active.Close()
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return nil, fs.ErrNotExist
}
