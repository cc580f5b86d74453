package process

import (
	"bytes"
	"errors"
	"io/fs"
	"math/bits"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/sysfile"
)

// bootIDs is true: the kernel gives each boot an id. A process recorded on this machine under another id is dead.
const bootIDs = true

var here = kept(func() (Identity, error) {
	if _, err := knowPidfs(); err != nil {
		return Identity{}, err
	}
	return place("/")
})

// place finds out, from files below root ("/" except in tests), in which boot and namespaces this process runs.
func place(root string) (Identity, error) {
	// /proc may have been mounted in another pid namespace. Its pids would then not be those of the
	// processes that kill(2) signals.
	switch self, err := os.Readlink(root + "proc/self"); {
	case errors.Is(err, fs.ErrNotExist):
		return Identity{}, fault.New(fault.Unavailable, "/proc", "is not mounted")
	case err != nil:
		return Identity{}, err
	case self != strconv.Itoa(os.Getpid()):
		return Identity{}, fault.New(fault.Unavailable, "/proc", "is mounted for another pid namespace")
	}
	id := Identity{Boot: thisBoot}
	for _, file := range []struct {
		path string
		word *string
	}{
		{"proc/sys/kernel/random/boot_id", &id.Boot}, // missing if /proc has subset=pid
		{"etc/machine-id", &id.Machine},
		{"var/lib/dbus/machine-id", &id.Machine},
	} {
		if *file.word != "" && *file.word != thisBoot {
			continue
		}
		text, err := word(root + file.path)
		if err != nil {
			return Identity{}, err
		}
		if text != "" {
			*file.word = text
		}
	}
	if id.Machine == "uninitialized" { // machine-id(5): a first boot in progress
		id.Machine = ""
	}
	var failed [2]error
	id.PIDNS, failed[0] = inode(root + "proc/self/ns/pid")
	id.TimeNS, failed[1] = inode(root + "proc/self/ns/time") // Linux 5.6
	if err := errors.Join(failed[:]...); err != nil {
		return Identity{}, err
	}
	return id, nil
}

// word returns the first line of a small file, "" if the file is missing or hidden.
func word(path string) (string, error) {
	var buf [128]byte
	text, err := sysfile.ReadStart(path, buf[:])
	text, _, _ = bytes.Cut(bytes.TrimSpace(text), []byte{'\n'})
	return string(bytes.TrimSpace(text)), unread(path, err)
}

// inode returns the inode of a file, 0 if the file is missing or hidden.
func inode(path string) (uint64, error) {
	var st unix.Stat_t
	err := sysfile.Retry(func() error { return unix.Stat(path, &st) })
	return st.Ino, unread(path, err)
}

// unread returns nil if a file is missing or hidden, and an error if it cannot be read just now. A lock has to
// record where its owner runs: otherwise no later process can find out whether the owner lives.
func unread(path string, err error) error {
	switch {
	case err == nil, errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, unix.ENOTDIR):
		return nil
	}
	return fault.Wrap(path, err)
}

// slurp returns what one read of a file returns, nothing if the read fails. slurp makes only three system calls.
func slurp(path string, buf []byte) []byte {
	text, _ := sysfile.ReadStart(path, buf)
	return text
}

func path(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }

// look reads one process. The error is unix.ESRCH if it is gone, unix.EPERM if hidepid hides it.
func look(pid int) (Entry, error) {
	var buf [1024]byte // the fields that matter are within the first 500 bytes
	text, err := sysfile.ReadStart(path(pid, statOf(pid)), buf[:])
	if err != nil {
		return Entry{}, missing(pid, err)
	}
	return parseStat(text)
}

// statOf names the file below /proc/PID that shows a process; for this process, the file of its first thread.
// Under qemu, a program of another architecture reads a made-up /proc/PID/stat of itself, with a later start,
// and other processes would take it for dead.
func statOf(pid int) string {
	if pid == os.Getpid() {
		return "task/" + strconv.Itoa(pid) + "/stat"
	}
	return "stat"
}

// missing returns what a failed read in /proc/PID means: unix.ESRCH if the process is gone, unix.EPERM if it
// is hidden, else err. hidepid=2 gives ENOENT for living processes too: then kill(2) decides.
func missing(pid int, err error) error {
	if err != unix.ENOENT && err != unix.ESRCH {
		return err
	}
	// A zombie reaped between the two calls is gone; one not reaped can be read.
	if unix.Kill(pid, 0) == unix.ESRCH || err == unix.ESRCH {
		return unix.ESRCH
	}
	return unix.EPERM
}

// exiting flags a process that has begun to exit (PF_EXITING of sched.h), before its files are closed.
const exiting = 4

const (
	forkNoExec   = 0x00000040 // PF_FORKNOEXEC of the kernel's sched.h
	kernelThread = 0x00200000 // PF_KTHREAD: a thread of the kernel
)

// parseStat reads proc_pid_stat(5). The command may hold blanks and parentheses: count from the last ')'.
func parseStat(text []byte) (Entry, error) {
	pid, rest, _ := bytes.Cut(text, []byte{'('})
	end := bytes.LastIndexByte(rest, ')')
	if end < 0 {
		return Entry{}, unix.EBADMSG
	}
	f := bytes.Fields(rest[end+1:]) // f[0] is field 3
	if len(f) < 20 {
		return Entry{}, unix.EBADMSG
	}
	bad := error(nil)
	number := func(b []byte) int64 { // flags and start need more than 32 bits
		n, err := strconv.ParseInt(string(b), 10, 64) // a process being reaped shows group -1
		if err != nil {
			bad = unix.EBADMSG
		}
		return n
	}
	e := Entry{
		kernel:  number(f[6])&kernelThread != 0,
		PID:     int(number(bytes.TrimSpace(pid))),
		Parent:  int(number(f[1])),
		PGID:    int(number(f[2])),
		SID:     int(number(f[3])),
		Start:   uint64(number(f[19])),
		Stopped: f[0][0] == 'T',
		Traced:  f[0][0] == 't',
		Exiting: number(f[6])&exiting != 0,
		Forked:  number(f[6])&forkNoExec != 0,
		Command: string(rest[:end]),
		Faults:  uint64(number(f[7])),
		Reaped:  uint64(number(f[8]) + number(f[10])),
		CPU:     time.Duration(number(f[11])+number(f[12])) * clockTick,
	}
	e.readImage(func(field int) uint64 {
		if len(f) <= field-3 {
			return 0
		}
		return address(f[field-3])
	})
	// A zombie has a thread count of 1. A leader that exited before its threads is in state Z too, but counts them.
	e.Exited = f[0][0] == 'X' || f[0][0] == 'Z' && number(f[17]) <= 1
	return e, bad
}

func (e *Entry) readImage(address func(field int) uint64) {
	const code, stack, heap, arguments, argumentsEnd, environ, environEnd = 26, 28, 47, 48, 49, 50, 51
	const prime = 1<<40 + 0x1b3 // of the checksum FNV-1a
	e.environ = -1
	for _, field := range []int{code, stack, heap, arguments, environ} {
		if address(field) == 0 { // an execve is under way, or this process may not see the address
			e.image = 0
			return
		}
		e.image = bits.RotateLeft64((e.image^address(field))*prime, 29)
	}
	e.arguments, e.environ = int(address(argumentsEnd)-address(arguments)), int(address(environEnd)-address(environ))
}

func address(text []byte) uint64 {
	n, _ := strconv.ParseUint(string(text), 10, 64)
	return n
}

// User returns the effective user; a *ThreadError if pid is the id of a thread. The owner of /proc/PID would be
// cheaper to read, but that is root for a process that may not be dumped (prctl(2)).
func User(pid int) (uid int, err error) {
	var buf [1024]byte
	text, err := sysfile.ReadStart(path(pid, "status"), buf[:])
	if err != nil {
		return uid, missing(pid, err)
	}
	process, err := statusNumber(text, "Tgid:", 0)
	if err == nil && process != pid {
		err = &ThreadError{process}
	}
	if err != nil {
		return uid, err
	}
	const effective = 1
	return statusNumber(text, "Uid:", effective)
}

func statusNumber(text []byte, field string, column int) (n int, err error) {
	_, line, _ := bytes.Cut(text, []byte("\n"+field))
	line, _, _ = bytes.Cut(line, []byte("\n"))
	f := bytes.Fields(line)
	if len(f) <= column {
		return n, unix.EBADMSG
	}
	return strconv.Atoi(string(f[column]))
}

func parent(pid int) (int, error) {
	e, err := Find(pid)
	if err != nil {
		return e.Parent, err
	}
	return e.above()
}

// above returns the parent's pid. Before Linux 6.13 the parent of a hidden process is not known: EPERM.
func (e Entry) above() (int, error) {
	if e.Hidden && e.Parent == 0 {
		return e.Parent, unix.EPERM
	}
	return e.Parent, nil
}

// Children returns the pids of a process's children; nil also if the kernel cannot list them (it needs
// CONFIG_PROC_CHILDREN). It may miss children while others start or end, and those beyond 4 KB of pids.
func Children(pid int) []int {
	tasks, err := os.ReadDir(path(pid, "task"))
	if err != nil {
		return nil
	}
	var pids []int
	var buf [4096]byte
	for _, task := range tasks {
		pids = appendPIDs(pids, slurp(path(pid, "task/"+task.Name()+"/children"), buf[:]))
	}
	return pids
}

// appendPIDs adds the numbers in list that end with a blank; a last number without one may be cut off.
func appendPIDs(pids []int, list []byte) []int {
	for {
		number, rest, whole := bytes.Cut(list, []byte{' '})
		pid, err := strconv.Atoi(string(number))
		if !whole || err != nil {
			return pids
		}
		pids, list = append(pids, pid), rest
	}
}
