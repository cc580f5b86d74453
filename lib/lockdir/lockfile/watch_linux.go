package lockfile

import (
	"runtime"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"adlock/lib/sysfile"
)

// Watch is woken by dnotify (fcntl(2), F_NOTIFY) when a file of the directory is removed, and by pidfds when
// owners die. inotify(7) would name the file, but closing it blocks for milliseconds.
//
// dnotify sends SIGIO to the thread that asked for it, and only that thread's signalfd(2) gets it. So
// NewWatch locks its goroutine to a thread until Close, and the same goroutine has to call Wait.
type Watch struct {
	dir     int // an open directory of its own: closing it ends the notification
	signals int
	mask    unix.Sigset_t // what the thread blocked before
}

var blind = Watch{dir: -1, signals: -1}

// NewWatch begins to watch the directory. If it cannot (a kernel without dnotify), Wait does not notice that a
// file is removed; an owner's death, an input or the time still ends the wait.
func NewWatch(dir *Dir) Watch {
	w := blind
	runtime.LockOSThread()
	if err := w.begin(dir); err != nil {
		w.end()
	}
	return w
}

func (w *Watch) begin(dir *Dir) (err error) {
	var blocked unix.Sigset_t
	blocked.Val[0] = 1 << (unix.SIGIO - 1)
	if err = unix.PthreadSigmask(unix.SIG_BLOCK, &blocked, &w.mask); err == nil {
		w.signals, err = unix.Signalfd(-1, &blocked, unix.SFD_CLOEXEC|unix.SFD_NONBLOCK)
	}
	if err == nil {
		w.dir, err = sysfile.Openat(dir.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	}
	if err == nil {
		err = notify(w.dir)
	}
	return err
}

// The values of F_OWNER_TID, DN_DELETE and DN_MULTISHOT (fcntl(2)).
const (
	ownerThread = 0
	dnDelete    = 0x8
	dnMultishot = -1 << 31
)

func notify(dir int) error {
	owner := struct{ kind, id int32 }{ownerThread, int32(unix.Gettid())}
	if _, _, errno := unix.Syscall(unix.SYS_FCNTL, uintptr(dir), unix.F_SETOWN_EX, uintptr(unsafe.Pointer(&owner))); errno != 0 {
		return errno
	}
	_, err := unix.FcntlInt(uintptr(dir), unix.F_NOTIFY, dnDelete|dnMultishot)
	return err
}

// Tells reports whether the kernel sends events for files that are removed.
func (w *Watch) Tells() bool { return w.dir >= 0 }

func (w *Watch) Close() {
	if w.Tells() {
		w.end()
	}
}

func (w *Watch) end() {
	for _, fd := range []int{w.dir, w.signals} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &w.mask, nil)
	runtime.UnlockOSThread()
	*w = blind
}

// vainMost is how many milliseconds, at most, a Watch pauses after other files were removed.
const vainMost = 16

// Wait returns when one of these locks has gone, one of the owners (pids of processes that lived a
// moment ago) is dead, one of the inputs (descriptors) can be read, or the time is up.
func (w *Watch) Wait(locks []Standing, owners, inputs []int, most time.Duration) {
	deadline := time.Now().Add(most)
	polled := []unix.PollFd{{Fd: int32(w.signals), Events: unix.POLLIN}}
	for _, fd := range inputs {
		polled = append(polled, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	dead, vain := false, time.Duration(0)
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
			return
		}
		timeout := int(left.Milliseconds()) + 1
		if dead {
			timeout = 0
		}
		n, err := unix.Poll(polled, timeout)
		told := err == nil && polled[0].Revents != 0
		switch {
		case told && w.sawOneGo(locks): // the locks come before the pidfds: an owner may have released and exited
			return
		case told && n == 1 && !dead: // other files are removed, perhaps hundreds in a second
			time.Sleep(min(left, vain*time.Millisecond))
			vain = min(vain+1, vainMost)
		case err == unix.EINTR:
		case err == nil && (n == 0 && !dead || slices.ContainsFunc(polled[1:1+len(inputs)], isReady)):
			return
		default:
			// An owner has died (the rest of its job mostly ends a moment later), or poll(2) has failed.
			time.Sleep(min(left, pollLeast))
			return
		}
	}
}

func isReady(p unix.PollFd) bool { return p.Revents != 0 }

// sawOneGo consumes the signal and reports whether one of the locks has gone. A later removal signals again.
func (w *Watch) sawOneGo(locks []Standing) bool {
	var signal [unsafe.Sizeof(unix.SignalfdSiginfo{})]byte
	_, _ = unix.Read(w.signals, signal[:]) // exactly one is pending, as SIGIO does not queue
	return slices.ContainsFunc(locks, func(lock Standing) bool {
		var st unix.Stat_t
		return sysfile.Lstatat(w.dir, lock.Name, &st) != nil || standing(lock.Name, &st) != lock
	})
}
