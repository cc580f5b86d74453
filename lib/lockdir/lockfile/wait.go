package lockfile

import (
	"math/rand/v2"
	"time"

	"adlock/lib/locker"
	"adlock/lib/policy"
)

// How often a waiting newcomer looks again where the kernel does not tell it
// (NFS, FUSE, no watch to be had), with jitter so that many do not look at once;
// and behind the kernel's word, in case a file system keeps silent.
const (
	pollMost   = time.Second
	pollBehind = 5 * time.Second
)

// How long a waiter leaves the atom to a newcomer that was faster: long compared with most
// hand-overs among many, and short for a person.
const (
	yieldLeast = 50 * time.Millisecond
	yieldMost  = 150 * time.Millisecond
)

// Waiting is one newcomer's wait at a directory; from the first denial on, the newcomer
// watches the directory.
type Waiting struct {
	locker.Waiting
	dir     *Dir
	request *locker.Request
	watched bool
	watch   Watch
	InWay   InWay // of the last look
}

// InWay is what a waiter watches: the files of the locks that deny it the atom, and the
// owners that are seen to live. The atom does not become free before one of them is gone, or
// the owner has expired (Outcome.Recheck). Other files must not wake the waiter, above all not
// the locks that waiters link and unlink themselves: waiters would wake each other without end.
type InWay struct {
	Files  []string
	Owners []int
}

// Add adds a lock, and its owner where that is seen to live.
func (i *InWay) Add(lock *Active, seen policy.Active) {
	i.Files = append(i.Files, lock.File.String())
	switch seen.Owner {
	case policy.Lives, policy.Ancestor, policy.Untouched:
		if !seen.Empty {
			i.Owners = append(i.Owners, lock.Record.Owner.PID)
		}
	}
}

// told reports whether the kernel tells of each change that can free the atom: one of the locks
// goes, or its owner dies. It is false where an owner cannot be watched (it is dead, but its job
// is not), and where no lock was seen in the way though the waiter was denied behind a lock of
// its own: another newcomer was faster, or a stopped process is changing a lock that looks free.
func (i *InWay) told() bool { return len(i.Files) > 0 && len(i.Owners) == len(i.Files) }

// NewWaiting begins the waiting that the request asks for, without a watch as yet.
func NewWaiting(dir *Dir, r *locker.Request) *Waiting {
	return &Waiting{Waiting: locker.NewWaiting(r), dir: dir, request: r}
}

// Close ends the watch. On Linux, closing the last descriptor of an inotify instance blocks
// for milliseconds, until no processor uses it; Request.Later does that beside the job.
func (w *Waiting) Close() {
	switch {
	case !w.watched:
	case w.request.Later != nil:
		w.request.Later(w.watch.Close)
	default:
		w.watch.Close()
	}
}

// Spent is how long the newcomer has waited.
func (w *Waiting) Spent() time.Duration {
	if !w.watched {
		return 0
	}
	return w.Waiting.Spent()
}

// Watches reports whether the watch is set, so whether the newcomer waits already.
func (w *Waiting) Watches() bool { return w.watched }

// Next returns when it is time to look again; false when the time is up. The
// first call only sets the watch: what happened before it must be looked for
// once more, or a release in between would be slept through.
func (w *Waiting) Next(o locker.Outcome) bool {
	if !w.watched {
		w.watch, w.watched = NewWatch(w.dir), true
		return true
	}
	left := w.Left()
	if left <= 0 {
		return false
	}
	w.Show(w.request, o)
	if w.watch.Wait(w.InWay.Files, w.InWay.Owners, w.Asker(), min(left, w.pollAfter(o))) {
		w.yield()
	}
	return true
}

// yield returns when it is time to look again, after a lock in the way has gone. Each release
// wakes all waiters of the lock, and all but one find it taken again: they see that by one
// call (one for each slot), and go on waiting. A whole look would cost each of them some twenty
// calls, and so take processor time from the new owner.
//
// No release is missed: the waiter empties the queue of events before it looks for the lock.
// A lock that is removed
//   - before the queue is emptied, and not put there again, is missing when the waiter looks;
//   - between the two is missing as well, and the next Wait tells of it once more;
//   - after the waiter has seen it is in the queue, and ends the next Wait.
//
// The look that follows finds what no event tells: that the new owner has died, has expired,
// or took the lock over. That look comes within yieldMost; where the lock goes again and
// again, within pollMost, as the atom may have become too soon.
func (w *Waiting) yield() {
	end := time.Now().Add(pollMost)
	for gone := true; gone && w.dir.HasAll(w.InWay.Files); {
		gone = w.watch.Wait(w.InWay.Files, nil, w.Asker(), w.yieldFor(time.Until(end)))
	}
}

// yieldFor is how long to wait for the lock to go again: random, so that waiters do not all
// look at once.
func (w *Waiting) yieldFor(most time.Duration) time.Duration {
	return min(yieldLeast+rand.N(yieldMost-yieldLeast), most, w.Left())
}

// pollAfter is how long to wait for an event of the kernel's before looking anyway.
func (w *Waiting) pollAfter(o locker.Outcome) time.Duration {
	look := pollBehind
	if !w.watch.Tells() || o.Verdict != locker.TooSoon && !w.InWay.told() {
		look = PollLeast + rand.N(pollMost-PollLeast)
	}
	if o.Recheck > 0 {
		look = min(look, o.Recheck+time.Millisecond)
	}
	return look
}
