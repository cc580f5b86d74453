package process

import (
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/sysfile"
)

// spare is one more than the number of descriptors that are kept free, to read /proc while a large job is held.
const spare = 16

// lastPidfd is the highest descriptor that a pidfd may have.
var lastPidfd = sync.OnceValue(func() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return noPidfd
	}
	return lastOf(limit.Cur)
})

func lastOf(descriptors uint64) int { return int(min(descriptors, 1<<20)) - spare }

// openPidfd returns noPidfd if pidfd_open(2) fails (as before Linux 5.3) or if few descriptors are left.
func openPidfd(pid int) int {
	fd, err := unix.PidfdOpen(pid, 0) // close-on-exec by default
	if err != nil {
		return noPidfd
	}
	if fd > lastPidfd() {
		unix.Close(fd)
		return noPidfd
	}
	return fd
}

// pidfs reports whether each process has a pidfd inode of its own, which is not reused before the next boot:
// pidfs, since Linux 6.9, on 64-bit machines. Earlier kernels have one anonymous inode for all pidfds.
var pidfs = func() bool {
	is, _ := knowPidfs() // false with an error
	return is
}

var knowPidfs = kept(findPidfs)

func findPidfs() (bool, error) {
	fd, err := unix.PidfdOpen(unix.Getpid(), 0)
	if err != nil {
		return false, lacking(err)
	}
	defer unix.Close(fd)
	return onPidfs(fd), nil
}

// lacking returns an error if a failed pidfd_open(2) may succeed later, and nil if it never can: there are no
// pidfds before Linux 5.3 and in some sandboxes.
func lacking(err error) error {
	switch err {
	case unix.EMFILE, unix.ENFILE, unix.ENOMEM:
		return fault.Wrap("pidfd", err)
	}
	return nil
}

func onPidfs(fd int) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(fd, &st) == nil && st.Type == unix.PID_FS_MAGIC && strconv.IntSize == 64
}

// inodeOfPidfd returns the inode of a pidfd; 0 for noPidfd, or without pidfs, where inodes identify no processes.
func inodeOfPidfd(fd int) uint64 {
	var st unix.Stat_t
	if !pidfs() || unix.Fstat(fd, &st) != nil {
		return 0
	}
	return st.Ino
}

// inodeOf returns the pidfd inode of the process with this pid; 0: there is no process, pidfd or pidfs.
func inodeOf(pid int) (uint64, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return 0, lacking(err)
	}
	defer unix.Close(fd)
	return inodeOfPidfd(fd), nil
}

func signalPidfd(fd int, sig unix.Signal) error {
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}

// pidfdExited polls the pidfd: it is readable once the process and all its threads have exited,
// even before the zombie is reaped (pidfd_open(2)). For noPidfd the answer is false.
func pidfdExited(fd int) bool { return sysfile.Poll(fd, unix.POLLIN)&unix.POLLIN != 0 }

// AwaitDeath returns when a process of the list has died, after d, or at a signal. The death of a process
// whose handle has no descriptor does not wake it.
func AwaitDeath(list []Handle, d time.Duration) {
	var poll []unix.PollFd
	for _, h := range list {
		if h.fd >= 0 {
			poll = append(poll, unix.PollFd{Fd: int32(h.fd), Events: unix.POLLIN})
		}
	}
	timeout := unix.NsecToTimespec(int64(d))
	// Errors are ignored: the caller checks the processes, and waits again.
	unix.Ppoll(poll, &timeout, nil)
}

// PIDLives reports whether any process in this pid namespace has that pid and is alive. PIDLives is false only
// for a pid below 1 and for a confirmed death: no such process, or one that exited with all its threads.
func PIDLives(pid int) bool {
	if pid <= 0 {
		return false
	}
	if fd := openPidfd(pid); fd != noPidfd {
		defer unix.Close(fd)
		return !pidfdExited(fd)
	}
	if unix.Kill(pid, 0) == unix.ESRCH {
		return false
	}
	e, err := look(pid)
	return err != unix.ESRCH && !e.Exited
}
