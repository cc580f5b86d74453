package config

import (
	"bytes"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/sysfile"
)

// moreThreads is how many threads the runtime may need besides its first ones. It was found by trying all limits.
const moreThreads = 6

// CheckThreads returns an error (71) if Go's runtime could not get its threads (ulimit -u): the runtime would end this
// process later, while the process holds a lock, with a trace of hundreds of lines.
func CheckThreads() error {
	var limit unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NPROC, &limit)
	if err != nil || limit.Cur == unix.RLIM_INFINITY || limit.Cur > threadsOfAll()+moreThreads {
		return nil
	}
	if tryToStart(moreThreads) == unix.EAGAIN {
		return &fault.Error{Kind: fault.System, Object: "ulimit -u " + strconv.FormatUint(limit.Cur, 10), Err: unix.EAGAIN}
	}
	return nil
}

// fewestFiles is how many descriptors a takeover of a small job, the runlog and the runtime need.
const fewestFiles = 16

// CheckFiles returns an error (71) if the hard limit of descriptors (ulimit -Hn) is too low.
func CheckFiles() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Max >= fewestFiles {
		return nil
	}
	return &fault.Error{Kind: fault.System, Object: "ulimit -n " + strconv.FormatUint(limit.Max, 10), Err: unix.EMFILE}
}

// threadsOfAll returns the number of threads on this machine, from the fourth field of /proc/loadavg
// (proc_loadavg(5)). If the file cannot be read, threadsOfAll returns a number above any limit.
func threadsOfAll() uint64 {
	const unknown = 1 << 62
	text, err := sysfile.ReadStart("/proc/loadavg", make([]byte, 128))
	f := bytes.Fields(text)
	if err != nil || len(f) < 4 {
		return unknown
	}
	_, total, _ := bytes.Cut(f[3], []byte{'/'})
	n, err := strconv.ParseUint(string(total), 10, 32)
	if err != nil {
		return unknown
	}
	return n
}

// tryToStart starts n processes, which count as threads do: a thread that fails would end this process.
func tryToStart(n int) (failed error) {
	for range n {
		pid, err := startAndExit()
		if err != nil {
			return err
		}
		defer sysfile.Wait(pid)
	}
	return nil
}

// startAndExit forks by clone3(2), whose arguments have one order on all architectures, and returns the
// child's pid, to be reaped. The child must only exit: it lacks the runtime's other threads.
func startAndExit() (int, error) {
	args := struct{ flags, pidfd, childTID, parentTID, exitSignal, stack, stackSize, tls uint64 }{exitSignal: uint64(unix.SIGCHLD)}
	pid, _, errno := syscall.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args), 0)
	if errno != 0 {
		return 0, errno
	}
	if pid == 0 {
		for {
			syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	return int(pid), nil
}
