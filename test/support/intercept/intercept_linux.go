// Package intercept puts a test between one thread and the kernel: the test gets each system call
// before it is made, and may let it fail, or change files first. So a failure that no file system
// produces on demand, or a step of another process between two calls, comes at the same call each
// time.
//
// It uses seccomp's notifications (seccomp_unotify(2), Linux 5.19 or later), which an ordinary
// user may ask for. Like package need it imports nothing of the project that is tested.
package intercept

import (
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"adlock/test/support/need"
)

// Call is a system call that is about to be made.
type Call struct {
	Number int
	Args   [6]uint64
}

// FD is the n-th argument as a descriptor, which may be AT_FDCWD.
func (c Call) FD(n int) int { return int(int32(c.Args[n])) }

// Run runs do on a thread of its own, and see on another goroutine before each of the given
// calls that do makes there; the call waits meanwhile. see returns the call's error; 0 lets the
// kernel make the call. Calls of openat and fstatat with AT_FDCWD are not intercepted, because a
// reader of /proc makes thousands; nor are calls of goroutines that do starts. do must start no
// processes, which would be intercepted for ever.
func Run(t testing.TB, do func(), see func(Call) unix.Errno, calls ...int) {
	t.Helper()
	defer uncollected()()
	var end [2]int // end[1] is closed when do has returned
	if err := unix.Pipe2(end[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(end[0])
	listener, done := make(chan int), make(chan struct{})
	var failed error
	go func() {
		defer close(done)
		defer unix.Close(end[1])
		runtime.LockOSThread() // and never unlocked: the thread ends with its filter
		fd, err := listen(calls)
		if failed = err; err != nil {
			close(listener)
			return
		}
		listener <- fd
		do()
	}()
	fd, listening := <-listener
	if !listening {
		<-done
		need.Skip(t, "no seccomp notifications to be had:", failed)
		return
	}
	if err := serve(fd, end[0], see); err != nil {
		t.Error("intercept:", err)
	}
	unix.Close(fd) // from now on the calls of do fail
	<-done
}

// collection is the garbage collector's setting, for the last of the calls of Run to restore: one
// may be called by the see of another, and outlast it.
var collection struct {
	sync.Mutex
	runs, percent int
}

// uncollected turns the garbage collector off until again is called. It stops all goroutines. The
// scheduler does not know of a raw call, so a thread that waits in one cannot stop, and the goroutine
// that would answer it has stopped: a deadlock.
func uncollected() (again func()) {
	collection.Lock()
	defer collection.Unlock()
	if collection.runs++; collection.runs == 1 {
		collection.percent = debug.SetGCPercent(-1)
		runtime.GC() // waits for a collection that has begun
	}
	return func() {
		collection.Lock()
		defer collection.Unlock()
		if collection.runs--; collection.runs == 0 {
			debug.SetGCPercent(collection.percent)
		}
	}
}

// listen puts the filter on this thread.
func listen(calls []int) (int, error) {
	filter := program(calls, runtimes())
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, err
	}
	list := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		// Without the second flag the runtime's own signals would repeat calls.
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, uintptr(unsafe.Pointer(&list)))
	if errno != 0 {
		return -1, errno
	}
	// Faster, if the kernel can (Linux 6.6): one thread runs while the other waits.
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, fd, unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	return int(fd), nil
}

// The offsets in struct seccomp_data of the call's number, and of the lower half of its first
// argument.
const (
	number   = 0
	argument = 16
)

// runtimes are the descriptors by which the Go runtime wakes threads that wait for files and
// timers (eventfd(2)). It writes there from any thread, and these writes must not wait for an
// answer: the answering goroutine may need what that thread holds.
func runtimes() (fds []uint32) {
	const most = 64 // the runtime opens them early, so their numbers are low
	for fd := range most {
		path, _ := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
		if path == "anon_inode:[eventfd]" {
			fds = append(fds, uint32(fd))
		}
	}
	return fds
}

// program is the filter for bpf(4); it lets writes to some descriptors pass.
func program(calls []int, unseen []uint32) []unix.SockFilter {
	const load, equal = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	last := uint8(len(calls) + len(unseen) + 3) // instructions between the first of the writes and "allow"
	filter := []unix.SockFilter{
		{Code: load, K: number},
		{Code: equal, K: unix.SYS_OPENAT, Jt: 1},
		{Code: equal, K: unix.SYS_NEWFSTATAT, Jf: 3},
		{Code: load, K: argument},
		{Code: equal, K: unix.AT_FDCWD & (1<<32 - 1), Jt: last + 1},
		{Code: load, K: number},
	}
	filter = append(filter, unix.SockFilter{Code: equal, K: unix.SYS_WRITE, Jf: uint8(len(unseen) + 2)}, unix.SockFilter{Code: load, K: argument})
	for i, fd := range unseen {
		filter = append(filter, unix.SockFilter{Code: equal, K: fd, Jt: uint8(len(unseen) + len(calls) - i)})
	}
	filter = append(filter, unix.SockFilter{Code: load, K: number})
	for i, call := range calls {
		filter = append(filter, unix.SockFilter{Code: equal, K: uint32(call), Jt: uint8(len(calls) - i)})
	}
	return append(filter,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF})
}

// notification and response are struct seccomp_notif and seccomp_notif_resp.
type notification struct {
	id         uint64
	pid, flags uint32
	number     int32
	arch       uint32
	pointer    uint64
	args       [6]uint64
}

type response struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// lookAgain is after how many milliseconds serve polls again for a waiting call: on Linux 6.18 a
// wake-up was lost when the polling and the calling thread ran on one processor.
const lookAgain = 20

// serve answers until the other end of the pipe is closed.
func serve(fd, end int, see func(Call) unix.Errno) error {
	for {
		polled := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(end)}}
		if _, err := unix.Poll(polled, lookAgain); err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if polled[1].Revents != 0 {
			return nil
		}
		if polled[0].Revents&unix.POLLIN != 0 {
			if err := answer(fd, see); err != nil {
				return err
			}
		}
	}
}

func answer(fd int, see func(Call) unix.Errno) error {
	var n notification
	switch err := ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)); {
	case err == unix.ENOENT:
		return nil // a signal of the Go runtime interrupted the call, which is made again
	case err != nil:
		return err
	}
	r := response{id: n.id}
	if errno := see(Call{int(n.number), n.args}); errno != 0 {
		r.errno = -int32(errno)
	} else {
		r.flags = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
	}
	return ioctl(fd, unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
}

func ioctl(fd int, request uintptr, argument unsafe.Pointer) error {
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(argument))
		if errno == 0 {
			return nil
		}
		if errno != unix.EINTR {
			return errno
		}
	}
}
