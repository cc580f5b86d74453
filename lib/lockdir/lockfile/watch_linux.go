package lockfile

import (
	"bytes"
	"encoding/binary"
	"iter"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Watch is woken by the kernel: by inotify when a lock of the directory is removed, by pidfds
// when owners die. By default a user has 128 inotify instances; without one, Watch only sleeps.
type Watch struct{ inotify int }

// NewWatch begins to watch the directory. Earlier events are not reported.
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

// Tells reports whether the kernel sends events for locks that are removed.
func (w Watch) Tells() bool { return w.inotify >= 0 }

// Close ends the watch.
func (w Watch) Close() {
	if w.Tells() {
		unix.Close(w.inotify)
	}
}

// Wait returns true when one of these files has gone. It returns false when one of the owners
// (pids of processes that lived a moment ago) is dead, when the asker (a descriptor; below 0:
// none) has input, or when the time is up. The next Wait reports files that go later.
func (w Watch) Wait(files []string, owners []int, asker int, most time.Duration) (gone bool) {
	deadline := time.Now().Add(most)
	polled := []unix.PollFd{{Fd: int32(w.inotify), Events: unix.POLLIN}, {Fd: int32(asker), Events: unix.POLLIN}}
	dead := false
	for _, pid := range owners {
		fd, err := unix.PidfdOpen(pid, 0)
		if err == nil {
			defer unix.Close(fd)
			polled = append(polled, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		}
		dead = dead || err == unix.ESRCH // the owner has died and been reaped since the last look
	}
	for {
		left := time.Until(deadline)
		if left <= 0 {
			return false
		}
		timeout := int(left.Milliseconds()) + 1
		if dead {
			timeout = 0
		}
		n, err := unix.Poll(polled, timeout)
		switch {
		case err == unix.EINTR:
		case err == nil && polled[0].Revents != 0: // before the pidfds: an owner may have released and exited
			if w.sawOneGo(files) {
				return true
			}
		case err == nil && (polled[1].Revents != 0 || n == 0 && !dead):
			return false
		default:
			// The rest of a dead owner's job mostly ends a moment later.
			time.Sleep(min(left, PollLeast))
			return false
		}
	}
}

// sawOneGo reads all queued events and reports whether one of them names one of these files.
func (w Watch) sawOneGo(files []string) bool {
	buffer := make([]byte, 16384)
	seen := false
	for {
		n, err := unix.Read(w.inotify, buffer)
		if err != nil {
			return seen || err != unix.EAGAIN
		}
		for file := range namesIn(buffer[:n]) {
			seen = seen || slices.Contains(files, file)
		}
	}
}

// namesIn yields the names of the files in the events (inotify(7)). An event is a header, whose
// last field is the length of the name, and the name, padded with null bytes.
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
