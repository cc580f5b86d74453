package lockfile

import (
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/flock"
	"adlock/lib/process"
	"adlock/lib/sysfile"
)

// line is a newcomer's place in the queue of an atom (protocol.md, 4a): flock(2) on the file line.NAME, which
// the kernel grants in the order of asking. The newcomer that holds the flock is the head of the queue.
//
// The queue only orders newcomers and saves work: it excludes no process from the atom. So a newcomer that cannot
// use the queue goes on without it, and two heads do no harm.
type line struct {
	dir  *Dir
	atom atom.Name
	file *flock.File
	head bool

	stalled stalled       // what the free atom was like when this newcomer last saw it
	since   time.Duration // when this newcomer first saw the atom like that; monotonic
}

type stalled struct {
	line  uint64 // inode of line.NAME
	last  uint64 // inode of the last lock
	stamp unix.Timespec
	token string // of the dead owner; "": there is no lock
}

// stallMost is how long the head of the queue may leave a free atom alone before it is passed.
const stallMost = time.Second

// isHead reports whether the newcomer may take the free atom: it is the head of the queue, has passed the head, or
// cannot use the queue. token is the dead owner's; "" if there is no lock.
func (l *line) isHead(token string) bool {
	l.open(false)
	return l.file == nil || l.tries() || l.passes(token)
}

// join queues the newcomer. It returns a descriptor that can be read once the newcomer is the head, or a negative one
// if it is the head or goes on without the queue. fresh is true if it just became the head: its last look may be old.
func (l *line) join() (granted int, fresh bool) {
	if l.file.IsAwaited() && !l.file.IsAtItsPath() { // another waiter has passed the head
		l.leave()
	}
	l.open(true)
	if l.file == nil {
		return -1, false
	}
	was := l.head
	if l.tries() {
		return -1, !was
	}
	granted, _ = l.file.Await() // below 0: the newcomer goes on without the queue
	return granted, false
}

// open opens line.NAME, and makes it only if create. Over a network it opens no file: the server would keep
// the queue, and may grant the lock late.
func (l *line) open(create bool) {
	if l.file == nil && !sysfile.IsNetwork(l.dir.fd) {
		l.file, _ = flock.Open(l.dir.Path(l.atom.Line()), false, create)
	}
}

func (l *line) tries() bool {
	if l.file.IsAwaited() {
		return false
	}
	free, err := l.file.TryLock()
	l.head = free || err != nil
	return l.head
}

// lookAfter returns how long a queued newcomer waits to check again: stallMost if it saw the atom free, else random.
func (l *line) lookAfter() time.Duration {
	if l.stalled != (stalled{}) {
		return stallMost
	}
	return pollBehind/2 + rand.N(pollBehind)
}

func (l *line) leave() {
	l.file.Close() // if this newcomer is the head, the kernel wakes the next one
	l.file, l.head = nil, false
}

// passes reports whether the newcomer has passed the head of the queue. It tries to pass one that is stopped or has
// left the free atom alone for stallMost: it joins a new queue, and has passed the old head if it heads the new one.
func (l *line) passes(token string) bool {
	seen := stalled{token: token}
	var st unix.Stat_t
	if sysfile.Lstatat(l.dir.fd, l.atom.LastLock(), &st) == nil {
		seen.last, seen.stamp = st.Ino, st.Mtim
	}
	if sysfile.Lstatat(l.dir.fd, l.atom.Line(), &st) == nil {
		seen.line = st.Ino
	}
	switch still, _ := process.Still(l.file.Locker()); {
	case still: // a stopped head is passed at once, even if newcomers that do not wait keep using the atom
	case seen != l.stalled:
		l.stalled, l.since = seen, process.Monotonic()
		return false
	case process.Monotonic()-l.since < stallMost:
		return false
	}
	if l.file.IsAtItsPath() {
		_ = l.dir.remove(l.atom.Line())
	}
	l.leave()
	granted, _ := l.join()
	return granted < 0
}

// RemoveLine removes the atom's line.NAME if no newcomer waits in that queue.
func (d *Dir) RemoveLine(name atom.Name) error {
	line, err := flock.Open(d.Path(name.Line()), false, false)
	if line == nil || err != nil {
		return err
	}
	defer line.Close()
	free, err := line.TryLock()
	if free {
		err = d.remove(name.Line())
	}
	return err
}
