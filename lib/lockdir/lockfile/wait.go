package lockfile

import (
	"math/rand/v2"
	"time"

	"adlock/lib/locker"
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
	whose   string // files concern it when they go: NAME, or with slots the Prefix of the program
	watched bool
	watch   Watch
}

// NewWaiting begins the waiting that the request asks for, without a watch as yet.
func NewWaiting(dir *Dir, r *locker.Request) *Waiting {
	w := &Waiting{Waiting: locker.NewWaiting(r), dir: dir, request: r, whose: string(r.Atom.Name())}
	if r.Slots > 0 {
		w.whose = r.Atom.Name().Prefix()
	}
	return w
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
	gone := w.watch.Wait(w.whose, o.Blocker, w.Asker(), min(left, w.pollAfter(o)))
	if gone && w.request.Slots == 0 {
		w.yield()
	}
	return true
}

// yield returns when it is time to look again, after a lock has gone. Each release wakes
// all who wait for the atom, and all but one find it taken again: they see that by one
// call, and go on waiting. To look would cost them some twenty calls each, and the one
// who has the atom the processors.
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
	for gone := true; gone && w.dir.Held(w.request.Atom.Name()); {
		gone = w.watch.Wait(w.whose, 0, w.Asker(), w.yieldFor(time.Until(end)))
	}
}

// yieldFor is how long to wait for the lock to go again; they do not all look at once.
func (w *Waiting) yieldFor(most time.Duration) time.Duration {
	return min(yieldLeast+rand.N(yieldMost-yieldLeast), most, w.Left())
}

// pollAfter is how long to wait for the kernel's word before looking anyway.
func (w *Waiting) pollAfter(o locker.Outcome) time.Duration {
	look := pollBehind
	if !w.watch.Tells() || o.Verdict == locker.Full {
		look = PollLeast + rand.N(pollMost-PollLeast)
	}
	if o.Recheck > 0 {
		look = min(look, o.Recheck+time.Millisecond)
	}
	return look
}
