package supervise

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/sysfile"
)

// gateName is argument 0 of a gate. It is no verb, so no person types it.
const gateName = "adlock: gate"

// The message that opens the gate is goAhead with the descriptors that stay open in the job (they are known only then),
// entries of the environment with a NUL between them, and endOfMessage. End of file does not open the gate: the
// supervisor has died, perhaps before it had the lock.
const (
	goAhead      = "g"
	endOfMessage = "\x00\x00"
)

// gate is a child that becomes the job at goAhead, so that the job's pid can be recorded before the job acts.
type gate struct {
	pid  int
	line int // this end of a socket pair; the gate's end closes when the gate becomes the job
	name string

	keeps   func() []int
	entries []string // of the job's environment, sent with goAhead
}

// startGate starts this program as a gate. The gate's end of the socket pair gets any free descriptor, whose number
// is an argument. A fixed number might have a meaning for the job, as for make's job server.
func startGate(job Job, files []uintptr) (*gate, error) {
	self, err := sysfile.OwnProgram()
	if err != nil {
		return nil, fault.Wrap(job.Command, err)
	}
	ours, theirs, err := sysfile.SocketPair()
	if err != nil {
		return nil, fault.Wrap(job.Command, err)
	}
	defer unix.Close(theirs)
	args := append([]string{gateName, strconv.Itoa(theirs), job.Path}, job.Args...)
	pid, err := forkInheriting([]int{theirs}, self, args, job.Env, files)
	if err != nil {
		unix.Close(ours)
		if err == syscall.E2BIG { // the command's arguments are too long
			return nil, cannotRun(job.Command, err)
		}
		return nil, &fault.Error{Kind: fault.System, Object: self, Err: err}
	}
	return &gate{pid: pid, line: ours, name: job.Command, keeps: job.kept}, nil
}

func (j *Job) kept() []int {
	if j.Keeps == nil {
		return nil
	}
	return j.Keeps()
}

// forkInheriting starts a program that keeps the descriptors fds, besides files as 0, 1 and 2. No other
// goroutine may fork during the call: its child would inherit fds. (syscall.ForkLock is no help: ForkExec takes it.)
func forkInheriting(fds []int, path string, args, env []string, files []uintptr) (int, error) {
	for _, fd := range fds {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return 0, err
		}
		defer unix.CloseOnExec(fd)
	}
	return syscall.ForkExec(path, args, &syscall.ProcAttr{Env: env, Files: files})
}

// open opens the gate, and waits until the gate is the job or dead. An error says why the gate cannot become the job.
func (g *gate) open() error {
	defer unix.Close(g.line)
	if err := g.send(); errors.Is(err, unix.EPIPE) {
		return nil
	} else if err != nil {
		return fault.Wrap(g.name, err)
	}
	answer := make([]byte, 16)
	n, err := sysfile.Read(g.line, answer)
	if err != nil || n == 0 {
		return nil // the gate's end was closed by execve(2), or by the gate's death
	}
	number, err := strconv.Atoi(string(answer[:n]))
	if err != nil {
		return fault.Wrap(g.name, err)
	}
	_, _ = sysfile.Wait(g.pid) // the status does not matter: the gate has sent its error
	return cannotRun(g.name, syscall.Errno(number))
}

func (g *gate) send() error {
	rights := syscall.UnixRights(g.keeps()...)
	err := sysfile.Retry(func() error { return syscall.Sendmsg(g.line, []byte(goAhead), rights, nil, 0) })
	if err == nil {
		_, err = sysfile.Write(g.line, []byte(strings.Join(g.entries, "\x00")+endOfMessage))
	}
	return err
}

func receive(line int) (entries []string, opened bool) {
	const mostKept = 8
	message, rights := make([]byte, len(goAhead)), make([]byte, syscall.CmsgSpace(4*mostKept))
	n, err := sysfile.RetryN(func() (n int, err error) {
		n, _, _, _, err = syscall.Recvmsg(line, message, rights, 0)
		return n, err
	})
	message = message[:max(n, 0)]
	for piece := make([]byte, 4096); !bytes.HasSuffix(message, []byte(endOfMessage)); {
		if err != nil || n == 0 {
			return nil, false
		}
		n, err = sysfile.Read(line, piece)
		message = append(message, piece[:max(n, 0)]...)
	}
	text, opened := strings.CutPrefix(strings.TrimSuffix(string(message), endOfMessage), goAhead)
	if text != "" {
		entries = strings.Split(text, "\x00")
	}
	return entries, opened
}

// abandon ends the gate by KILL, because a stopped gate does not end when the socket is closed.
// KILL is safe: the gate has done nothing yet, and no other process gets its pid before the gate is reaped.
func (g *gate) abandon() {
	_ = unix.Kill(g.pid, unix.SIGKILL)
	unix.Close(g.line)
	_, _ = sysfile.Wait(g.pid)
}

// Gate must be called at the beginning of main. In a process that was started as a gate, Gate waits, becomes the job
// and never returns; in other processes it does nothing.
func Gate() {
	if len(os.Args) > 3 && os.Args[0] == gateName {
		os.Exit(pass(os.Args[1], os.Args[2], os.Args[3:]))
	}
}

// pass waits for goAhead on the descriptor with the number line, then becomes the program at path. It returns
// the gate's exit status if the job is cancelled or cannot be run.
func pass(line, path string, args []string) int {
	fd, err := strconv.Atoi(line)
	if err != nil {
		return fault.StatusUsage
	}
	fault.OnQuit()
	unix.CloseOnExec(fd)
	entries, opened := receive(fd)
	if !opened {
		return fault.StatusDenied
	}
	env := os.Environ()
	for _, entry := range entries {
		env = withEntry(env, entry)
	}
	err = execute(path, args, func(path string, args []string) error {
		return syscall.Exec(path, args, env)
	})
	var number syscall.Errno
	if errors.As(err, &number) {
		// This fails if the supervisor has died, which does not matter.
		_, _ = sysfile.Write(fd, []byte(strconv.Itoa(int(number))))
	}
	return fault.StatusNotRunnable
}
