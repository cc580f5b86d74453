package guarding

import (
	"strconv"

	"golang.org/x/sys/unix"

	"adlock/lib/process"
)

// SpeakFor makes the standard error of a job that of this process, which has none: while
// the job runs only the job keeps its standard error open, else its reader
// (cron, ssh, a pipe) would wait for this process too. So it is for a process that is about to
// end the job, and to say why. It leads to where it leads now for the owner, or where
// that is dead, for the first of the job that lives. What cannot be opened (a socket, say)
// leaves everything as it is: the record and the hook are told in any case.
func SpeakFor(job process.Job) {
	owner := job.Owner.Key()
	if speakAs(owner) {
		return // there may be little time: the table of all processes is not read for nothing
	}
	for _, e := range membersOf(job) {
		if e.Key() != owner && speakAs(e.Key()) {
			return
		}
	}
}

// speakAs is false where that process is dead, or what it has there cannot be opened.
func speakAs(k process.Key) bool {
	fd := openStandardError(k)
	if fd < 0 {
		return false
	}
	_ = unix.Dup3(fd, 2, 0) // it cannot fail with two descriptors that are good
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

// openStandardError opens what a process has there anew, so that a file is not written
// over, a pipe does not make us wait, and a terminal does not become ours. -1: it cannot
// be opened, or the process is another one by now.
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
