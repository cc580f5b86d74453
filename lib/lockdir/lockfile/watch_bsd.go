//go:build darwin || freebsd || netbsd || openbsd

package lockfile

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Watch is woken by kqueue when the directory changes, an owner dies or an input can be read.
// This code is only compiled, never tested.
type Watch struct{ queue int }

var blind = Watch{-1}

// NewWatch begins to watch the directory. Earlier events are not reported.
func NewWatch(dir *Dir) Watch {
	queue, err := unix.Kqueue()
	if err != nil {
		return blind
	}
	unix.CloseOnExec(queue)
	w, change := Watch{queue}, unix.Kevent_t{Fflags: unix.NOTE_WRITE}
	unix.SetKevent(&change, dir.fd, unix.EVFILT_VNODE, unix.EV_ADD|unix.EV_CLEAR)
	if _, err := unix.Kevent(queue, []unix.Kevent_t{change}, nil, nil); err != nil {
		w.Close()
	}
	return w
}

// Tells reports whether the kernel sends events for locks that are removed.
func (w *Watch) Tells() bool { return w.queue >= 0 }

func (w *Watch) Close() {
	if w.queue >= 0 {
		unix.Close(w.queue)
	}
	*w = blind
}

// Wait returns when the directory has changed (kqueue names no file), an owner has died, one of the
// inputs (descriptors) can be read, or the time is up.
func (w *Watch) Wait(_ []Standing, owners, inputs []int, most time.Duration) {
	if w.queue < 0 {
		time.Sleep(most)
		return
	}
	var changes []unix.Kevent_t
	for _, fd := range inputs {
		var change unix.Kevent_t
		unix.SetKevent(&change, fd, unix.EVFILT_READ, unix.EV_ADD)
		changes = append(changes, change)
	}
	for _, pid := range owners {
		change := unix.Kevent_t{Fflags: unix.NOTE_EXIT}
		unix.SetKevent(&change, pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
		changes = append(changes, change)
	}
	timeout := unix.NsecToTimespec(int64(most))
	events := make([]unix.Kevent_t, 1+len(changes)) // with room for each change's error
	n, err := unix.Kevent(w.queue, changes, events, &timeout)
	failed := func(e unix.Kevent_t) bool { return e.Flags&unix.EV_ERROR != 0 }
	if err != nil || slices.ContainsFunc(events[:n], failed) {
		time.Sleep(min(most, pollLeast)) // keeps the caller from looping: a dead owner, for one, fails with ESRCH at once
	}
}
