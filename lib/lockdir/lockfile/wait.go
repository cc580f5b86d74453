package lockfile

import (
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/locker"
	"adlock/lib/policy"
)

// The times between two looks of a waiter. pollMost, at random, if the kernel sends no events (NFS,
// FUSE, no watch left); pollBehind in case the file system sends none after all.
const (
	pollLeast  = 100 * time.Millisecond
	pollMost   = time.Second
	pollBehind = 5 * time.Second
)

// lookAgain is how long a waiter blocks for a file before it looks whether that is overdue.
const lookAgain = time.Minute

// Waiting is one newcomer's wait at a directory.
type Waiting struct {
	locker.Waiting
	dir     *Dir
	request *locker.Request
	waits   func(locker.Outcome) // called once, before the newcomer blocks for the first time
	Began   bool                 // the newcomer is waiting
	watched bool
	watch   Watch
	line    *line
	InWay   InWay // seen in the last look
}

// InWay is what a waiter watches: the locks that deny it the atom, and their living owners. Other files
// must not wake it, above all the locks of other waiters: they would wake each other without end.
type InWay struct {
	Locks  []Standing
	Owners []int
	Line   bool // the newcomer has to wait in the line
}

// Standing is a lock that was seen under its name. That of another newcomer, which may have taken its
// place unnoticed, has another inode or, as inodes are used again, another mtime.
type Standing struct {
	Name  string
	inode uint64
	since int64 // the mtime in nanoseconds
}

func standing(name string, st *unix.Stat_t) Standing { return Standing{name, st.Ino, st.Mtim.Nano()} }

// Add adds a lock, and its owner if that lives.
func (i *InWay) Add(lock *Active, seen policy.Active) {
	i.Locks = append(i.Locks, standing(lock.name, &lock.st))
	switch seen.Owner {
	case policy.Lives, policy.Ancestor, policy.Untouched:
		if !seen.Empty {
			i.Owners = append(i.Owners, lock.Record.Owner.PID)
		}
	}
}

// hasEvents reports whether the kernel sends an event for each change that can free the atom. It sends
// none if an owner is dead, but members of its job live, and if the waiter was denied after the look:
// another newcomer was faster, or a stopped process guards a lock that looks free.
func (i *InWay) hasEvents() bool { return len(i.Locks) > 0 && len(i.Owners) == len(i.Locks) }

// NewWaiting starts the wait. waits is called once, before the newcomer blocks for the first time.
func NewWaiting(dir *Dir, r *locker.Request, waits func(locker.Outcome)) *Waiting {
	return &Waiting{Waiting: locker.NewWaiting(r), dir: dir, request: r, waits: waits, watch: blind, line: &line{dir: dir, atom: r.Atom.Name()}}
}

// Close ends the watch. A newcomer with the atom keeps its place in the line during its run (Request.Keep).
func (w *Waiting) Close(acquired bool) {
	w.watch.Close()
	if acquired && w.request.Keep != nil && !w.request.Shared {
		w.request.Keep(w.line.leave)
		return
	}
	w.line.leave()
}

// Spent is how long the newcomer has waited.
func (w *Waiting) Spent() time.Duration {
	if !w.Began {
		return 0
	}
	return w.Waiting.Spent()
}

// IsTurn tells whether no other newcomer comes first. free: there is no active lock, or its owner, with
// this token, is dead. A newcomer that does not wait, or no longer, passes those that do.
func (w *Waiting) IsTurn(free bool, token string) bool {
	if !free {
		w.line.stalled = stalled{}
		return true
	}
	return w.Left() <= 0 || w.line.isHead(token)
}

// Next returns when it is time to look again; false when the time is up, or when the process is dead
// for which the lock is asked: its waiter would go on as a process of its job.
//
// When it has set the watch, or has become the head, the newcomer looks again at once: a release before
// causes no event.
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

// begin returns a descriptor that can be read when the file or the place at the head of the line is
// granted; below 0: none is awaited. fresh is as for join.
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
		look = min(look, o.Recheck+time.Millisecond)
	}
	return look
}
