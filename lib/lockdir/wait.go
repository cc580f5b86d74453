package lockdir

import (
	"math/rand/v2"
	"time"

	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
)

// How often a waiting newcomer looks again where the kernel does not tell it
// (NFS, FUSE, no watch to be had), with jitter so that many do not look at once;
// and behind the kernel's word, in case a file system keeps silent.
const (
	pollLeast  = 100 * time.Millisecond
	pollMost   = time.Second
	pollBehind = 5 * time.Second
)

// waiting is one newcomer's waiting at a directory: from the first denial on with a
// watch on it.
type waiting struct {
	locker.Waiting
	dir     *lockfile.Dir
	request *locker.Request
	whose   string // files concern it when they go: NAME, or with slots the Prefix of the program
	watched bool
	watch   watch
}

func newWaiting(dir *lockfile.Dir, r *locker.Request) *waiting {
	w := &waiting{Waiting: locker.NewWaiting(r), dir: dir, request: r, whose: string(r.Atom.Name())}
	if r.Slots > 0 {
		w.whose = r.Atom.Name().Prefix()
	}
	return w
}

func (w *waiting) close() {
	if w.watched {
		w.watch.close()
	}
}

// spent is how long the newcomer has waited.
func (w *waiting) spent() time.Duration {
	if !w.watched {
		return 0
	}
	return w.Spent()
}

// next returns when it is time to look again; false when the time is up. The
// first call only sets the watch: what happened before it must be looked for
// once more, or a release in between would be slept through.
func (w *waiting) next(o locker.Outcome) bool {
	if !w.watched {
		w.watch, w.watched = newWatch(w.dir), true
		return true
	}
	left := w.Left()
	if left <= 0 {
		return false
	}
	w.Show(w.request, o)
	w.watch.wait(w.whose, o.Blocker, w.Asker(), min(left, w.pollAfter(o)))
	return true
}

// pollAfter is how long to wait for the kernel's word before looking anyway.
func (w *waiting) pollAfter(o locker.Outcome) time.Duration {
	look := pollBehind
	if !w.watch.tells() || o.Verdict == locker.Full {
		look = pollLeast + rand.N(pollMost-pollLeast)
	}
	if o.Recheck > 0 {
		look = min(look, o.Recheck+time.Millisecond)
	}
	return look
}
