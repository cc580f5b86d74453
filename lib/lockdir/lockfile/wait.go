package lockfile

import (
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/locker"
	"adlock/lib/policy"
)

// A waiter checks again at an event, or after pollBehind if the event is lost. If no event will come (NFS, FUSE, no
// watch left, a dead owner's job), the time between two checks is random, from pollLeast to pollMost.
const (
	pollLeast  = 100 * time.Millisecond
	pollMost   = time.Second
	pollBehind = 5 * time.Second
)

// lookAgain is how long a waiter blocks for a file before it checks whether the file's holder is overdue.
const lookAgain = time.Minute

// Waiting is the wait of one newcomer in a lock directory.
type Waiting struct {
	locker.Waiting
	dir     *Dir
	request *locker.Request
	waits   func(locker.Outcome) // called once, before the newcomer blocks for the first time
	Began   bool                 // the newcomer is waiting
	watched bool
	watch   Watch
	line    *line
	InWay   InWay // what the last check found in the newcomer's way
}

// InWay is what a waiter watches: the locks that deny it the atom, and their living owners. Other files must
// not wake the waiter, least of all the locks of other waiters, which would wake each other without end.
type InWay struct {
	Locks  []Standing
	Owners []int
	Line   bool // the newcomer has to join the queue
}

// Standing is a lock file as it was seen under its name. A lock that has taken its place since has another
// inode or, as inodes are reused, another mtime.
type Standing struct {
	Name  string
	inode uint64
	since int64 // the mtime in nanoseconds
}

func standing(name string, st *unix.Stat_t) Standing { return Standing{name, st.Ino, st.Mtim.Nano()} }

// Add adds a lock and, if its owner lives, that process.
func (i *InWay) Add(lock *Active, seen policy.Active) {
	i.Locks = append(i.Locks, standing(lock.name, &lock.st))
	if !seen.Empty && slices.Contains([]policy.Owner{policy.Lives, policy.Ancestor, policy.Untouched}, seen.Owner) {
		i.Owners = append(i.Owners, lock.Record.Owner.PID)
	}
}

// hasEvents reports whether the kernel sends an event for each change that can free the atom. It sends none for an
// owner that is not known to live (members of its job may), and none if no lock was found in the way: another
// newcomer was faster, or a stopped process guards a lock that looks free.
func (i *InWay) hasEvents() bool { return len(i.Locks) > 0 && len(i.Owners) == len(i.Locks) }

// NewWaiting starts the wait. waits (nil: none) is called once, before the newcomer first blocks.
func NewWaiting(dir *Dir, r *locker.Request, waits func(locker.Outcome)) *Waiting {
	return &Waiting{Waiting: locker.NewWaiting(r), dir: dir, request: r, waits: waits, watch: blind, line: &line{dir: dir, atom: r.Atom.Name()}}
}

// Close ends the watch, and the newcomer leaves the queue. If the newcomer has acquired the atom, not as a reader, and
// Request.Keep is set, it keeps its place during its run: Keep gets the function that leaves the queue.
func (w *Waiting) Close(acquired bool) {
	w.watch.Close()
	if acquired && w.request.Keep != nil && !w.request.Shared {
		w.request.Keep(w.line.leave)
		return
	}
	w.line.leave()
}

func (w *Waiting) Spent() time.Duration {
	if !w.Began {
		return 0
	}
	return w.Waiting.Spent()
}

// IsTurn reports whether the newcomer may act on what it has found: no waiter comes before it, or it has no time left to
// wait, or the atom is not free. The atom is free without an active lock, or if its owner (token) is dead.
func (w *Waiting) IsTurn(free bool, token string) bool {
	if !free {
		w.line.stalled = stalled{}
		return true
	}
	return w.Left() <= 0 || w.line.isHead(token)
}

// Next returns true when it is time to check the atom again. It returns false when the waiting time is up, or
// when the process for which the lock is asked has died.
//
// Just after the watch was set, and when the newcomer has become the head of the queue, Next returns true at
// once: a release before that causes no event.
func (w *Waiting) Next(o locker.Outcome) bool {
	left := w.Left()
	if w.Began && left <= 0 {
		return false
	}
	w.Began = true
	var inputs, owners []int
	var locks []Standing
	if w.request.IsForAnother() {
		owners = append(owners, w.request.Owner.PID)
	}
	if asker := w.Asker(); asker >= 0 {
		inputs = append(inputs, asker)
	}
	granted, fresh := w.begin(o)
	switch {
	case granted >= 0:
		inputs = append(inputs, granted)
	case !w.watched:
		w.watch, w.watched = NewWatch(w.dir), true
		return true
	case fresh:
		return true
	default:
		owners, locks = append(owners, w.InWay.Owners...), w.InWay.Locks
	}
	if w.waits != nil {
		w.waits(o)
		w.waits = nil
	}
	w.Show(w.request, o)
	w.watch.Wait(locks, owners, inputs, min(left, w.pollAfter(o, granted >= 0)))
	return !w.request.IsForTheDead()
}

// begin returns a descriptor that can be read when Request.Flock, or the place at the head of the queue, is
// granted, or a negative one if the newcomer waits for neither. fresh is as for join.
func (w *Waiting) begin(o locker.Outcome) (granted int, fresh bool) {
	if w.InWay.Line && !o.IsFile() {
		return w.line.join()
	}
	w.line.leave()
	if !o.IsFile() {
		return -1, false
	}
	granted, _ = w.request.Flock.Await()
	return granted, false
}

func (w *Waiting) pollAfter(o locker.Outcome, inLine bool) time.Duration {
	look := pollBehind
	switch {
	case o.IsFile():
		look = lookAgain
	case inLine:
		look = w.line.lookAfter()
	case !w.watch.Tells() || o.Verdict != locker.TooSoon && o.Verdict != locker.Paused && !w.InWay.hasEvents():
		look = pollLeast + rand.N(pollMost-pollLeast)
	}
	if o.Recheck > 0 {
		look = min(look-time.Millisecond, o.Recheck) + time.Millisecond // a Recheck of limit.Never must not overflow
	}
	return look
}
