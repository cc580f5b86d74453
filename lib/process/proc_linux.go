package process

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"adlock/lib/exit"
)

// bootIDs: this system names its boots.
const bootIDs = true

// here returns the part of an Identity that says where this process reads.
// It is read once.
var here = sync.OnceValues(func() (Identity, error) {
	// /proc may have been mounted in another pid namespace; its pids would
	// then be other processes than those that we signal.
	switch self, err := os.Readlink("/proc/self"); {
	case errors.Is(err, fs.ErrNotExist):
		return Identity{}, exit.New(exit.Unavailable, "/proc", "is not mounted")
	case err != nil:
		return Identity{}, err
	case self != strconv.Itoa(os.Getpid()):
		return Identity{}, exit.New(exit.Unavailable, "/proc", "is mounted for another pid namespace")
	}
	id := Identity{Boot: word("/proc/sys/kernel/random/boot_id"), Machine: word("/etc/machine-id")}
	if id.Machine == "" {
		id.Machine = word("/var/lib/dbus/machine-id")
	}
	if id.Machine == "uninitialized" { // machine-id(5): a first boot in progress
		id.Machine = ""
	}
	id.PIDNS, id.TimeNS = inode("/proc/self/ns/pid"), inode("/proc/self/ns/time")
	return id, nil
})

// word returns the content of a small file, "" where it cannot be read.
func word(path string) string {
	var buf [128]byte
	return string(bytes.TrimSpace(slurp(path, buf[:])))
}

// inode returns 0 where there is no such namespace (time: Linux 5.6).
func inode(path string) uint64 {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return 0
	}
	return st.Ino
}

// slurp returns what one read gives, nil where it fails. Unlike os.ReadFile it
// costs three system calls, which a scan of /proc makes many times.
func slurp(path string, buf []byte) []byte {
	text, _ := read(path, buf)
	return text
}

func read(path string, buf []byte) ([]byte, error) {
	fd, err := again(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	n, err := again(func() (int, error) { return unix.Read(fd, buf) })
	if err != nil {
		return nil, err
	}
	return buf[:n], nil
}

// again repeats what a signal interrupted.
func again(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != unix.EINTR {
			return n, err
		}
	}
}

func path(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }

// look reads one process: unix.ESRCH where it is gone, unix.EPERM where
// hidepid hides it.
func look(pid int) (entry, error) {
	var buf [1024]byte // the fields that matter come within the first 500 bytes
	text, err := read(path(pid, "stat"), buf[:])
	if err != nil {
		return entry{}, missing(pid, err)
	}
	return parseStat(text)
}

// missing says what a failed read in /proc/PID means. hidepid=2 gives ENOENT
// for the living too: only ESRCH from the kernel's own table means gone.
func missing(pid int, err error) error {
	if err != unix.ENOENT && err != unix.ESRCH {
		return err
	}
	if unix.Kill(pid, 0) == unix.ESRCH {
		return unix.ESRCH
	}
	// A zombie reaped between the two calls is gone; one not reaped can be read.
	if err == unix.ESRCH {
		return unix.ESRCH
	}
	return unix.EPERM
}

// parseStat reads /proc/PID/stat, proc_pid_stat(5). The command may hold
// blanks and parentheses, so fields are counted from the last ')'.
func parseStat(text []byte) (entry, error) {
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 1 || end < open {
		return entry{}, unix.EBADMSG
	}
	f := bytes.Fields(text[end+1:]) // f[0] is field 3
	if len(f) < 20 {
		return entry{}, unix.EBADMSG
	}
	bad := error(nil)
	number := func(b []byte) int {
		n, err := strconv.Atoi(string(b)) // a process being reaped shows group -1
		if err != nil {
			bad = unix.EBADMSG
		}
		return n
	}
	e := entry{
		pid:     number(bytes.TrimSpace(text[:open])),
		ppid:    number(f[1]),
		pgid:    number(f[2]),
		sid:     number(f[3]),
		start:   uint64(number(f[19])),
		stopped: f[0][0] == 'T',
		command: string(text[open+1 : end]),
	}
	// A zombie's only thread is itself; a leader that exited before its
	// threads is in state Z too, but counts them.
	e.dead = f[0][0] == 'X' || f[0][0] == 'Z' && number(f[17]) <= 1
	return e, bad
}

// user returns the effective user. The owner of /proc/PID would be cheaper,
// but it is root's for a process that may not be dumped (prctl(2)).
func user(pid int) (int, error) {
	var buf [1024]byte
	text, err := read(path(pid, "status"), buf[:])
	if err != nil {
		return 0, missing(pid, err)
	}
	process, err := statusNumber(text, "Tgid:", 0)
	if err == nil && process != pid {
		err = &ThreadError{process}
	}
	if err != nil {
		return 0, err
	}
	const effective = 1
	return statusNumber(text, "Uid:", effective)
}

// statusNumber returns a number of /proc/PID/status.
func statusNumber(text []byte, field string, column int) (int, error) {
	_, line, _ := bytes.Cut(text, []byte("\n"+field))
	line, _, _ = bytes.Cut(line, []byte("\n"))
	f := bytes.Fields(line)
	if len(f) <= column {
		return 0, unix.EBADMSG
	}
	return strconv.Atoi(string(f[column]))
}

// parent returns the parent's pid. Where hidepid hides the process, its pidfd
// still tells (Linux 6.13).
func parent(pid int) (int, error) {
	e, err := look(pid)
	if err != unix.EPERM {
		return e.ppid, err
	}
	if e, there := hidden(pid); there && e.ppid != 0 {
		return e.ppid, nil
	}
	return 0, err
}

// children returns the pids of a process' children as the kernel lists them
// (CONFIG_PROC_CHILDREN), in microseconds where a table takes milliseconds.
// It may miss some while they come and go: it adds to a table, and does not
// replace one.
func children(pid int) []int {
	tasks, err := os.ReadDir(path(pid, "task"))
	if err != nil {
		return nil
	}
	var pids []int
	var buf [4096]byte
	for _, task := range tasks {
		for _, f := range bytes.Fields(slurp(path(pid, "task/"+task.Name()+"/children"), buf[:])) {
			if child, err := strconv.Atoi(string(f)); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}
