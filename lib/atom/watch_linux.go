package atom

import (
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/lock"
	"adlock/lib/name"
)

// watch is woken by the kernel: by inotify when a lock of the directory goes,
// by a pidfd when the owner dies. 128 inotify instances a user are the default;
// without one it merely sleeps.
type watch struct{ inotify int }

func newWatch(dir *lock.Dir) watch {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return watch{-1}
	}
	path := "/proc/self/fd/" + strconv.Itoa(dir.Fd())
	if _, err := unix.InotifyAddWatch(fd, path, unix.IN_DELETE|unix.IN_MOVED_FROM|unix.IN_DELETE_SELF); err != nil {
		unix.Close(fd)
		return watch{-1}
	}
	return watch{fd}
}

func (w watch) tells() bool { return w.inotify >= 0 }

func (w watch) close() {
	if w.inotify >= 0 {
		unix.Close(w.inotify)
	}
}

// wait returns when a lock of the atom's program has gone, the owner has died,
// or the time is up.
func (w watch) wait(a name.Atom, owner int, most time.Duration) {
	deadline := time.Now().Add(most)
	polled := []unix.PollFd{{Fd: int32(w.inotify), Events: unix.POLLIN}, {Fd: -1, Events: unix.POLLIN}}
	if owner > 0 {
		if fd, err := unix.PidfdOpen(owner, 0); err == nil {
			defer unix.Close(fd)
			polled[1].Fd = int32(fd)
		}
	}
	mine := "." + name.Canonify(a.Program) + "." // lock., or a reader's read.
	for {
		left := time.Until(deadline)
		if left <= 0 {
			return
		}
		n, err := unix.Poll(polled, int(left.Milliseconds())+1)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 || polled[1].Revents != 0 {
			if err != nil || polled[1].Revents&unix.POLLIN != 0 && n == 1 {
				// A dead owner whose group still holds the atom wakes at once
				// each time: do not spin.
				time.Sleep(min(left, pollLeast))
			}
			return
		}
		if w.sawOneGo(mine) {
			return
		}
	}
}

// sawOneGo empties the queue of events and tells whether one was about a file
// whose name holds the text.
func (w watch) sawOneGo(text string) bool {
	buffer := make([]byte, 16384)
	seen := false
	for {
		n, err := unix.Read(w.inotify, buffer)
		if n <= 0 || err != nil {
			return seen || err != unix.EAGAIN
		}
		seen = seen || strings.Contains(string(buffer[:n]), text)
	}
}
