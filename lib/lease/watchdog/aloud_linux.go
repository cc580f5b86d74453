package watchdog

import (
	"strconv"

	"golang.org/x/sys/unix"

	"adlock/lib/process"
)

// SpeakFor gives this process, which has no standard error, the owner's standard error. While the job runs,
// no other process may keep the job's standard error open: its reader (cron, ssh, a pipe) would wait for
// that process too. So a process calls SpeakFor only when it is about to end the job and to report why. If it cannot
// be opened (a dead owner's, a socket), the returned killer.Killer.Record tries the members', or what is printed is lost.
func SpeakFor(owner process.Identity) func([]process.Identity) error {
	spoken := speakAs(owner.Key())
	return func(members []process.Identity) error {
		for _, m := range members {
			spoken = spoken || speakAs(m.Key())
		}
		return nil
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
