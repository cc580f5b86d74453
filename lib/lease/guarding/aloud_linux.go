package guarding

import (
	"strconv"

	"golang.org/x/sys/unix"

	"adlock/lib/process"
)

// SpeakFor makes the job's standard error that of this process, which has none. While the job
// runs, no other process may keep that open: its reader (cron, ssh, a pipe) would wait for this
// process too. So SpeakFor is for a process that is about to end the job and to say why. It uses
// the owner's present standard error or, if the owner is dead, that of the first member that
// lives. If it cannot be opened (a socket, say), nothing changes: the runlog and the hook are
// told in any case.
func SpeakFor(job process.Job) {
	owner := job.Owner.Key()
	if speakAs(owner) {
		return // time may be short: do not read the table of all processes for nothing
	}
	for _, e := range membersOf(job) {
		if e.Key() != owner && speakAs(e.Key()) {
			return
		}
	}
}

// speakAs is false if that process is dead, or its standard error cannot be opened.
func speakAs(k process.Key) bool {
	fd := openStandardError(k)
	if fd < 0 {
		return false
	}
	_ = unix.Dup3(fd, 2, 0) // it cannot fail with two valid descriptors
	_ = unix.Close(fd)
	return true
}

func membersOf(job process.Job) []process.Entry {
	members := process.Membership{Roots: map[process.Key]bool{job.Owner.Key(): true}}
	list, err := process.Table()
	if err != nil || members.AddBands(job) != nil {
		return nil
	}
	members.Drop(list)
	return members.Find(list, func(process.Key) bool { return false })
}

// openStandardError opens a process's standard error again, so that a file is appended to, a pipe
// does not block, and a terminal does not become this process's. -1: it cannot be opened, or the
// pid now belongs to another process.
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
