package atom

import (
	"math/rand/v2"
	"time"

	"adlock/lib/limit"
	"adlock/lib/lock"
	"adlock/lib/process"
)

// How often a waiting newcomer looks again where the kernel does not tell it
// (NFS, FUSE, no watch to be had), with jitter so that many do not look at once;
// and behind the kernel's word, in case a file system keeps silent.
const (
	pollLeast  = 100 * time.Millisecond
	pollMost   = time.Second
	pollBehind = 5 * time.Second
)

// waiting is one newcomer's waiting: a deadline, and from the first denial on a
// watch on the directory.
type waiting struct {
	dir     *lock.Dir
	r       *Request
	began   time.Duration // boottime
	watched bool
	watch   watch
}

func newWaiting(dir *lock.Dir, r *Request) *waiting {
	w := &waiting{dir: dir, r: r, began: r.WaitSince}
	if r.Wait > 0 && w.began == 0 {
		w.began = process.Boottime()
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
	return process.Boottime() - w.began
}

func (w *waiting) left() time.Duration {
	if w.r.Wait == limit.Never {
		return limit.Never
	}
	return w.r.Wait - (process.Boottime() - w.began)
}

// worthwhile reports whether the outcome may be another one before the deadline.
func (w *waiting) worthwhile(o Outcome) bool {
	if w.r.Wait == 0 || o.endless {
		return false
	}
	switch o.Verdict {
	case Busy, Full:
		return w.left() > 0
	case TooSoon:
		return w.r.WaitElapsed && o.recheck <= w.left()
	}
	return false
}

// next returns when it is time to look again; false when the time is up. The
// first call only sets the watch: what happened before it must be looked for
// once more, or a release in between would be slept through.
func (w *waiting) next(o Outcome) bool {
	if !w.watched {
		w.watch, w.watched = newWatch(w.dir), true
		return true
	}
	left := w.left()
	if left <= 0 {
		return false
	}
	w.watch.wait(w.r.Atom, o.blocker, min(left, w.patience(o)))
	return true
}

// patience is how long to wait for the kernel's word before looking anyway.
func (w *waiting) patience(o Outcome) time.Duration {
	look := pollBehind
	if !w.watch.tells() || o.Verdict == Full {
		look = pollLeast + rand.N(pollMost-pollLeast)
	}
	if o.recheck > 0 {
		look = min(look, o.recheck+time.Millisecond)
	}
	return look
}
