//go:build darwin || freebsd || netbsd || openbsd

package lockfile

import (
	"time"

	"golang.org/x/sys/unix"
)

// Watch is woken by kqueue when the directory changes, the owner dies or the asker
// says something. Not run: this was only compiled.
type Watch struct{ queue, dir int }

// NewWatch begins to watch the directory. What has happened before is not told.
func NewWatch(dir *Dir) Watch {
	queue, err := unix.Kqueue()
	if err != nil {
		return Watch{-1, -1}
	}
	unix.CloseOnExec(queue)
	return Watch{queue, dir.fd}
}

// Tells reports whether the kernel tells of locks that go.
func (w Watch) Tells() bool { return w.queue >= 0 }

// Close ends the watch.
func (w Watch) Close() {
	if w.queue >= 0 {
		unix.Close(w.queue)
	}
}

// Wait returns when the directory has changed, the owner has died, the asker (a descriptor;
// below 0: none) has something to say, or the time is up. It never tells that a lock has
// gone, as kqueue names no file.
func (w Watch) Wait(_ string, owner, asker int, most time.Duration) (gone bool) {
	if w.queue < 0 {
		time.Sleep(most)
		return false
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
		time.Sleep(min(most, PollLeast)) // such as ESRCH: the owner is gone
	}
	return false
}
