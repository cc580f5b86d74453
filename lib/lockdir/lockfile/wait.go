package lockfile

import (
	"math/rand/v2"
	"os"
	"time"

	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
)

// The longest times between two looks of a waiter. pollMost is used if the kernel sends no events
// (NFS, FUSE, no watch left); jitter shortens it, so that waiters do not all look at once.
// pollBehind is used if events are expected, in case the file system sends none after all.
const (
	pollMost   = time.Second
	pollBehind = 5 * time.Second
)

// lookAgain is how long a waiter blocks for a file before it looks whether that is overdue.
const lookAgain = time.Minute

// How long a waiter leaves the atom to a newcomer that was faster, before it looks in full: long
// compared with most hand-overs between waiters, and short for a person.
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
	InWay   InWay // seen in the last look
}

// InWay is what a waiter watches: the files of the locks that deny it the atom, and the living
// owners of these locks. The atom does not become free before one of them is gone, or the owner has
// expired (Outcome.Recheck). Other files must not wake the waiter, above all not the locks that
// waiters link and unlink themselves: waiters would wake each other without end.
type InWay struct {
	Files  []string
	Owners []int
}

// Add adds a lock, and its owner if that lives.
func (i *InWay) Add(lock *Active, seen policy.Active) {
	i.Files = append(i.Files, lock.File.String())
	switch seen.Owner {
	case policy.Lives, policy.Ancestor, policy.Untouched:
		if !seen.Empty {
			i.Owners = append(i.Owners, lock.Record.Owner.PID)
		}
	}
}

// hasEvents reports whether the kernel sends an event for each change that can free the atom: a
// lock is removed, or its owner dies. It is false where an owner cannot be watched (it is dead, but
// members of its job live). It is also false where the look found no lock in the way but the waiter
// was denied after linking its own: another newcomer was faster, or a stopped process guards a lock
// that looks free.
func (i *InWay) hasEvents() bool { return len(i.Files) > 0 && len(i.Owners) == len(i.Files) }

// NewWaiting starts the wait that the request asks for, without a watch yet.
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

// Watches reports whether the watch is set: the newcomer is already waiting.
func (w *Waiting) Watches() bool { return w.watched }

// Next returns when it is time to look again; false when the time is up, or when the process is dead
// for which the lock is asked: its waiter would go on as a process of its job. The first call only
// sets the watch and has the caller look again: a release before the watch was set causes no event.
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
	if o.IsFile() {
		over := func() bool { return w.Left() <= 0 || w.isForTheDead() }
		w.request.Flock.Await(min(left, lookAgain), over)
		return !over()
	}
	awaited := w.InWay.Owners
	if w.asksForAnother() {
		awaited = append(awaited, w.request.Owner.PID)
	}
	if w.watch.Wait(w.InWay.Files, awaited, w.Asker(), min(left, w.pollAfter(o))) {
		w.yield()
	}
	return !w.isForTheDead()
}

func (w *Waiting) isForTheDead() bool {
	return w.asksForAnother() && w.request.Owner.Life() == process.Dead
}

func (w *Waiting) asksForAnother() bool {
	owner := w.request.Owner.PID
	return owner != 0 && owner != os.Getpid()
}

// yield returns when it is time to look again, after a lock in the way has gone. Each release
// wakes all waiters of the lock, and all but one find it taken again. One system call shows that
// (one for each slot), and they wait on. A full look would cost each of them some twenty calls,
// and take processor time from the new owner.
//
// No release is missed: the waiter empties the queue of events before it looks for the lock.
// A lock that is removed
//   - before the queue is emptied, and not replaced, is missing when the waiter looks;
//   - after that but before the waiter looks is missing too, and the next Wait reports it again;
//   - after the waiter has seen it has an event in the queue, which ends the next Wait.
//
// The full look that follows finds what no event reports: the new owner has died, has expired, or
// took the lock over. It comes within yieldMost or, while the lock goes again and again, within
// pollMost: the waiter may be denied as too soon by now.
func (w *Waiting) yield() {
	end := time.Now().Add(pollMost)
	for gone := true; gone && w.dir.HasAll(w.InWay.Files); {
		gone = w.watch.Wait(w.InWay.Files, nil, w.Asker(), w.yieldFor(time.Until(end)))
	}
}

// yieldFor is how long yield waits for the lock to go again. It is random, so that waiters do not
// all look at once.
func (w *Waiting) yieldFor(most time.Duration) time.Duration {
	return min(yieldLeast+rand.N(yieldMost-yieldLeast), most, w.Left())
}

// pollAfter is how long to wait for a kernel event before looking anyway.
func (w *Waiting) pollAfter(o locker.Outcome) time.Duration {
	look := pollBehind
	if !w.watch.Tells() || o.Verdict != locker.TooSoon && o.Verdict != locker.Paused && !w.InWay.hasEvents() {
		look = PollLeast + rand.N(pollMost-PollLeast)
	}
	if o.Recheck > 0 {
		look = min(look, o.Recheck+time.Millisecond)
	}
	return look
}
