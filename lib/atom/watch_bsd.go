//go:build darwin || freebsd || netbsd || openbsd

package atom

import (
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/lock"
	"adlock/lib/name"
)

// watch is woken by kqueue when the directory changes or the owner dies. Not
// run: this was only compiled.
type watch struct{ queue, dir int }

func newWatch(dir *lock.Dir) watch {
	queue, err := unix.Kqueue()
	if err != nil {
		return watch{-1, -1}
	}
	unix.CloseOnExec(queue)
	return watch{queue, dir.Fd()}
}

func (w watch) tells() bool { return w.queue >= 0 }

func (w watch) close() {
	if w.queue >= 0 {
		unix.Close(w.queue)
	}
}

func (w watch) wait(_ name.Atom, owner int, most time.Duration) {
	if w.queue < 0 {
		time.Sleep(most)
		return
	}
	var changes [2]unix.Kevent_t
	unix.SetKevent(&changes[0], w.dir, unix.EVFILT_VNODE, unix.EV_ADD|unix.EV_CLEAR)
	changes[0].Fflags = unix.NOTE_WRITE
	watched := changes[:1]
	if owner > 0 {
		unix.SetKevent(&changes[1], owner, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
		changes[1].Fflags = unix.NOTE_EXIT
		watched = changes[:2]
	}
	timeout := unix.NsecToTimespec(int64(most))
	var events [2]unix.Kevent_t
	if _, err := unix.Kevent(w.queue, watched, events[:], &timeout); err != nil {
		time.Sleep(min(most, pollLeast)) // such as ESRCH: the owner is gone
	}
}
