package locker

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/limit"
	"adlock/lib/process"
	"adlock/lib/sysfile"
)

// Waiting records how long a newcomer wants to wait, and when the waiting began.
type Waiting struct {
	wait    time.Duration
	elapsed bool
	began   time.Duration // boottime
	asker   *os.File
}

// NewWaiting starts the clock now, or at WaitSince, if the request asks for waiting.
func NewWaiting(r *Request) Waiting {
	w := Waiting{wait: r.Wait, elapsed: r.WaitElapsed, began: r.WaitSince, asker: r.Asker}
	if w.wait > 0 && w.began == 0 {
		w.began = process.Boottime()
	}
	return w
}

// Left returns how long the newcomer still wants to wait; 0 or less: not at all, as when Asker can be read.
func (w Waiting) Left() time.Duration {
	if w.wait > 0 && readable(w.Asker()) {
		return 0
	}
	switch w.wait {
	case 0, limit.Never:
		return w.wait
	}
	return w.wait - w.Spent()
}

// Asker returns the descriptor of Request.Asker; -1 if there is none.
func (w Waiting) Asker() int {
	if w.asker == nil {
		return -1
	}
	return int(w.asker.Fd())
}

// IsGivenUp reports whether no process waits for the answer any more.
func (r *Request) IsGivenUp() bool {
	return readable(Waiting{asker: r.Asker}.Asker()) || r.IsForTheDead()
}

// IsForAnother reports whether the lock is asked for another process, whose death ends the wait.
func (r *Request) IsForAnother() bool { return r.Owner.PID != 0 && r.Owner.PID != os.Getpid() }

// IsForTheDead reports whether the lock is asked for another process that is dead.
func (r *Request) IsForTheDead() bool { return r.IsForAnother() && r.Owner.Life() == process.Dead }

func readable(fd int) bool { return fd >= 0 && sysfile.Poll(fd, unix.POLLIN) != 0 }

func (w Waiting) Spent() time.Duration {
	if w.wait == 0 {
		return 0
	}
	return process.Boottime() - w.began
}

func (w Waiting) Show(r *Request, o Outcome) {
	what := "for the atom"
	switch {
	case o.IsFile():
		what = "for " + o.inWay.File
	case o.Blocker != 0:
		what = "for " + o.inWords(o.Blocker)
	case o.Verdict == Full:
		what = "for a slot"
	case o.Verdict == TooSoon:
		what = "for IfElapsed"
	case o.Verdict == Paused:
		what = "for the end of a pause"
	}
	seen := time.Now()
	r.StatusLine.Show(func() string {
		text := Title(r.Atom) + ": waiting " + what + ": " + limit.FormatAge(w.Spent())
		if w.wait != limit.Never {
			text += ", at most " + limit.FormatLeft(w.Left()) + " more"
		}
		if o.Verdict == Busy && o.Endable() && o.Recheck > 0 {
			text += "; it expires in " + limit.FormatLeft(o.Recheck-time.Since(seen))
		}
		return text
	})
}

// Worthwhile reports whether the outcome may change before the time for waiting is up.
func (w Waiting) Worthwhile(o Outcome) bool {
	if w.wait == 0 || o.Endless {
		return false
	}
	switch o.Verdict {
	case Busy, Full, Paused:
		return w.Left() > 0
	case TooSoon:
		return w.elapsed && o.Recheck <= w.Left()
	}
	return false
}
