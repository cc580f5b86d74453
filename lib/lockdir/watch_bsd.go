//go:build darwin || freebsd || netbsd || openbsd

package lockdir

import (
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/lockdir/lockfile"
)

// watch is woken by kqueue when the directory changes, the owner dies or the asker
// says something. Not run: this was only compiled.
type watch struct{ queue, dir int }

func newWatch(dir *lockfile.Dir) watch {
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

func (w watch) wait(_ string, owner, asker int, most time.Duration) {
	if w.queue < 0 {
		time.Sleep(most)
		return
	}
	var changes [3]unix.Kevent_t
	unix.SetKevent(&changes[0], w.dir, unix.EVFILT_VNODE, unix.EV_ADD|unix.EV_CLEAR)
	changes[0].Fflags = unix.NOTE_WRITE
	n := 1
	if asker >= 0 {
		unix.SetKevent(&changes[n], asker, unix.EVFILT_READ, unix.EV_ADD)
		n++
	}
	if owner > 0 {
		unix.SetKevent(&changes[n], owner, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
		changes[n].Fflags = unix.NOTE_EXIT
		n++
	}
	timeout := unix.NsecToTimespec(int64(most))
	var events [3]unix.Kevent_t
	if _, err := unix.Kevent(w.queue, changes[:n], events[:], &timeout); err != nil {
		time.Sleep(min(most, pollLeast)) // such as ESRCH: the owner is gone
	}
}
