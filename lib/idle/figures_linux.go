package idle

import (
	"bytes"
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"adlock/lib/process"
	"adlock/lib/sysfile"
)

func (f *Figures) read(e process.Entry) {
	if e.Hidden {
		f.Err = unix.EPERM
		return
	}
	f.CPU, f.Faults, f.Reaped = e.CPU, e.Faults, e.Reaped
	dir := "/proc/" + strconv.Itoa(e.PID) + "/"
	for _, read := range []func(string) error{f.readIO, f.readThreads} {
		if f.Err = read(dir); f.Err != nil {
			return
		}
	}
}

// readIO reads how many bytes read(2) and write(2) have transferred, and how many went from and to disks
// (proc_pid_io(5)): access to a mapped file shows only in the latter.
func (f *Figures) readIO(dir string) error {
	var buf [512]byte
	text, err := sysfile.ReadStart(dir+"io", buf[:])
	if err != nil {
		return err
	}
	if f.Calls, err = sum(text, "rchar:", "wchar:"); err != nil {
		return err
	}
	f.Disk, err = sum(text, "read_bytes:", "write_bytes:")
	return err
}

// readThreads reads state, context switches and SigIgn of each thread: /proc/PID/status shows only the first.
func (f *Figures) readThreads(dir string) error {
	tasks, err := os.Open(dir + "task")
	if err != nil {
		return err
	}
	defer tasks.Close()
	names, err := tasks.Readdirnames(-1)
	if err != nil {
		return err
	}
	var buf [4096]byte
	for _, name := range names {
		path := dir + "task/" + name + "/status"
		text, err := sysfile.ReadStart(path, buf[:])
		if len(text) == len(buf) { // the process has hundreds of groups
			text, err = os.ReadFile(path)
		}
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ESRCH) { // this thread has ended
			continue
		}
		if err != nil {
			return err
		}
		n, err := sum(text, "voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:")
		if err != nil {
			return err
		}
		f.Switches += n
		f.Ignores = f.Ignores || ignores(text, unix.SIGCHLD)
		if state := doing[stateOf(text)]; state != "" {
			f.State = state
		}
	}
	return nil
}

// doing describes the thread states that count as work.
var doing = map[byte]string{
	'R': "is running",
	'D': "is in uninterruptible sleep",
	'T': "is stopped",
	't': "is stopped by a debugger",
}

func stateOf(status []byte) byte {
	_, line, _ := bytes.Cut(status, []byte("\nState:\t"))
	if len(line) == 0 {
		return 'R' // the state could not be read
	}
	return line[0]
}

// ignores reports whether a signal is ignored (SigIgn, proc_pid_status(5)); true if it is unknown. If a process
// ignores SIGCHLD, the kernel reaps its children and adds their figures to none of its counts (wait(2)).
func ignores(status []byte, signal unix.Signal) bool {
	_, line, _ := bytes.Cut(status, []byte("\nSigIgn:\t"))
	line, _, _ = bytes.Cut(line, []byte{'\n'})
	mask, err := strconv.ParseUint(string(line), 16, 64)
	return err != nil || mask>>(signal-1)&1 != 0
}

// sum adds the numbers in the lines that begin with the keys. A missing line is an error.
func sum(text []byte, keys ...string) (total uint64, err error) {
	for _, key := range keys {
		_, line, found := bytes.Cut(append([]byte{'\n'}, text...), []byte("\n"+key))
		line, _, _ = bytes.Cut(line, []byte{'\n'})
		n, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 10, 64)
		if !found || err != nil {
			return 0, unix.EBADMSG
		}
		total += n
	}
	return total, nil
}
