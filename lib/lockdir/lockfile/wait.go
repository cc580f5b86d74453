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

// How long one that found another newcomer faster leaves the atom to it: long beside
// most hand-overs among many, and short for a person.
const (
	yieldLeast = 50 * time.Millisecond
	yieldMost  = 150 * time.Millisecond
)

// Waiting is one newcomer's waiting at a directory: from the first denial on with a
// watch on it.
type Waiting struct {
	locker.Waiting
	dir     *Dir
	request *locker.Request
	watched bool
	watch   Watch
	InWay   InWay // of the last look
}

// InWay is what a waiter watches: the files of the locks that deny it the atom, and the
// owners that are seen to live. The atom is not to be had before one of them is gone, or the
// owner has expired (Outcome.Recheck). Other files do not concern the waiter, above all not
// those that waiters link and unlink themselves: else they would wake each other without end.
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

// told says that the kernel tells when one of the locks goes, and when its owner dies. Not where
// an owner cannot be watched: it is dead, say, and its job is not. And not where nothing was
// seen in the way, and the atom was denied behind a lock of the waiter's own: another newcomer
// was faster, or a stopped process is changing a lock that looks free.
func (i *InWay) told() bool { return len(i.Files) > 0 && len(i.Owners) == len(i.Files) }

// NewWaiting begins the waiting that the request asks for, without a watch as yet.
func NewWaiting(dir *Dir, r *locker.Request) *Waiting {
	return &Waiting{Waiting: locker.NewWaiting(r), dir: dir, request: r}
}

// Close ends the watch. Linux lets whoever closes the last descriptor of one wait until no
// processor looks at it any more, milliseconds that a job can be spared.
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

// Watches tells whether the watch is set: the newcomer waits.
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
// wakes all that wait for the lock, and all but one find it taken again: they see that by one
// call (one for each slot), and go on waiting. To look would cost them some twenty calls each,
// and the newcomer that has the atom the processors.
//
// Nothing is lost by it: the queue of events was emptied before the lock is looked for. One
// that is removed
//   - before that, and not put there again, is not there when it is looked for;
//   - between the two likewise, and is told once more by the next Wait;
//   - after it was seen is in the queue, and ends the next Wait.
//
// What no event tells is found by the look that follows: that the new owner has died, has
// expired, or took the lock over. It comes within yieldMost; where the lock goes again and
// again, within pollMost, as the atom may have become too soon.
func (w *Waiting) yield() {
	end := time.Now().Add(pollMost)
	for gone := true; gone && w.dir.HasAll(w.InWay.Files); {
		gone = w.watch.Wait(w.InWay.Files, nil, w.Asker(), w.yieldFor(time.Until(end)))
	}
}

// yieldFor is how long to wait for the lock to go again; they do not all look at once.
func (w *Waiting) yieldFor(most time.Duration) time.Duration {
	return min(yieldLeast+rand.N(yieldMost-yieldLeast), most, w.Left())
}

// pollAfter is how long to wait for the kernel's word before looking anyway.
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
