package watchdog

import (
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"adlock/lib/killer"
	"adlock/lib/process"
)

// SpeakFor gives this process, which has none, the job's standard error: the owner's or, if that cannot be opened (a
// dead owner's, a socket), a member's. Call it only to report an ending: while a job runs, no other process may keep
// its standard error open, as the reader (cron, ssh, a pipe) would wait for that process too.
func SpeakFor(job process.Job) {
	if !speakAs(job.Owner.Key()) {
		members, _ := killer.Members(job) // without a table, there are none to try
		_ = slices.ContainsFunc(members, func(m process.Entry) bool { return speakAs(m.Key()) })
	}
}

// speakAs gives this process the standard error of k; false if k is dead or its standard error cannot be opened.
func speakAs(k process.Key) bool {
	fd := openStandardError(k)
	if fd < 0 {
		return false
	}
	_ = unix.Dup3(fd, 2, 0) // cannot fail: both descriptors are valid
	_ = unix.Close(fd)
	return true
}

// openStandardError opens a process's standard error anew: writes append to a file, and do not block on a pipe. This
// process gets no controlling terminal. It returns -1 if the file cannot be opened or the pid has been reused.
func openStandardError(k process.Key) int {
	path := "/proc/" + strconv.Itoa(k.PID) + "/fd/2"
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_APPEND|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	if now, err := process.Find(k.PID); err != nil || now.Key() != k {
		_ = unix.Close(fd)
		return -1
	}
	return fd
}
