package lockfile

import (
	"bytes"
	"encoding/binary"
	"iter"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
)

// Watch is woken by the kernel: by inotify when a lock of the directory goes,
// by a pidfd when the owner dies. 128 inotify instances a user are the default;
// without one it merely sleeps.
type Watch struct{ inotify int }

// NewWatch begins to watch the directory. What has happened before is not told.
func NewWatch(dir *Dir) Watch {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return Watch{-1}
	}
	path := "/proc/self/fd/" + strconv.Itoa(dir.fd)
	if _, err := unix.InotifyAddWatch(fd, path, unix.IN_DELETE|unix.IN_MOVED_FROM|unix.IN_DELETE_SELF); err != nil {
		unix.Close(fd)
		return Watch{-1}
	}
	return Watch{fd}
}

// Tells reports whether the kernel tells of locks that go.
func (w Watch) Tells() bool { return w.inotify >= 0 }

// Close ends the watch.
func (w Watch) Close() {
	if w.Tells() {
		unix.Close(w.inotify)
	}
}

// Wait returns when a lock of that NAME, or of a program (its Prefix), has gone, which it
// tells; when the owner (0: none) has died, the asker (a descriptor; below 0: none) has
// something to say, or the time is up. What goes after that Wait is told by the next one.
func (w Watch) Wait(whose string, owner, asker int, most time.Duration) (gone bool) {
	deadline := time.Now().Add(most)
	polled := []unix.PollFd{{Fd: int32(w.inotify), Events: unix.POLLIN}, {Fd: -1, Events: unix.POLLIN}, {Fd: int32(asker), Events: unix.POLLIN}}
	if fd, err := unix.PidfdOpen(owner, 0); err == nil { // of 0 there is none
		defer unix.Close(fd)
		polled[1].Fd = int32(fd)
	}
	for {
		left := time.Until(deadline)
		if left <= 0 {
			return false
		}
		n, err := unix.Poll(polled, int(left.Milliseconds())+1)
		switch {
		case err == unix.EINTR:
		case err == nil && polled[0].Revents != 0 && w.sawOneGo(whose): // first: who releases may have exited since
			return true
		case err != nil, polled[1].Revents != 0 && n == 1:
			// A dead owner whose group still holds the atom wakes at once
			// each time: do not spin.
			time.Sleep(min(left, PollLeast))
			return false
		case n == 0, polled[2].Revents != 0:
			return false
		}
	}
}

// sawOneGo empties the queue of events and tells whether one was about a file of
// that NAME, or of that program.
func (w Watch) sawOneGo(whose string) bool {
	buffer := make([]byte, 16384)
	seen := false
	for {
		n, err := unix.Read(w.inotify, buffer)
		if err != nil {
			return seen || err != unix.EAGAIN
		}
		for file := range namesIn(buffer[:n]) {
			name := atom.ParseFile(file).Name
			seen = seen || string(name) == whose || name.Prefix() == whose
		}
	}
}

// namesIn yields the names of the files that the events are about (inotify(7)): an
// event is a header, which ends with the length of the rest, and the name, filled
// up with null bytes.
func namesIn(events []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		for len(events) >= unix.SizeofInotifyEvent {
			length := binary.NativeEndian.Uint32(events[unix.SizeofInotifyEvent-4:])
			end := unix.SizeofInotifyEvent + int(length)
			name := bytes.TrimRight(events[unix.SizeofInotifyEvent:end], "\x00")
			if !yield(string(name)) {
				return
			}
			events = events[end:]
		}
	}
}
