package supervise

import (
	"errors"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/sysfile"
)

// gateName is the first argument of a gate: no verb, so no person types it.
const gateName = "adlock: gate"

// goAhead opens the gate. End of file does not: it means that the supervisor
// died, perhaps before it had the lock.
const goAhead = 'g'

// gate is a child of this process that waits for a word and then becomes the job, so that the
// job's pid can be recorded before the job does anything.
type gate struct {
	pid  int
	line int // this end of a socket pair; the other closes when the gate has become the job
	name string

	entry string // of the environment, sent with the word to go ahead
}

// startGate starts the program of this process as a gate. Its end of the socket has any free
// number, which the gate is told: the numbers from 3 on may have a meaning for the job, as for
// make's job server.
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
	pid, err := forkInheriting(theirs, self, args, job.Env, files)
	if err != nil {
		unix.Close(ours)
		return nil, cannotRun(job.Command, err)
	}
	return &gate{pid: pid, line: ours, name: job.Command}, nil
}

// forkInheriting starts a program that keeps the descriptor fd. No other goroutine may fork
// meanwhile, or it would pass fd on too: ForkExec takes syscall.ForkLock for itself, so it cannot
// be held here.
func forkInheriting(fd int, path string, args, env []string, files []uintptr) (int, error) {
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
		return 0, err
	}
	return syscall.ForkExec(path, args, &syscall.ProcAttr{Env: env, Files: files})
}

// open lets the gate become the job, and waits until it has. A gate that died is no error here:
// its wait status shows how the job ended before it began.
func (g *gate) open() error {
	defer unix.Close(g.line)
	if err := g.tell(); errors.Is(err, unix.EPIPE) {
		return nil
	} else if err != nil {
		return fault.Wrap(g.name, err)
	}
	answer := make([]byte, 16)
	n, err := sysfile.Read(g.line, answer)
	if err != nil || n == 0 {
		return nil // closed by execve(2), or by the gate's death
	}
	number, err := strconv.Atoi(string(answer[:n]))
	if err != nil {
		return fault.Wrap(g.name, err)
	}
	_, _ = sysfile.Wait(g.pid) // its answer is the error
	return cannotRun(g.name, syscall.Errno(number))
}

func (g *gate) tell() error {
	_, err := sysfile.Write(g.line, append([]byte{goAhead}, g.entry...))
	return err
}

// abandon ends the gate by KILL. The end of the socket would do, unless the gate is stopped; it
// has done nothing yet that KILL could spoil, and its pid is its own until it is reaped.
func (g *gate) abandon() {
	_ = unix.Kill(g.pid, unix.SIGKILL)
	unix.Close(g.line)
	_, _ = sysfile.Wait(g.pid)
}

// Gate is the first call of main. In a process that was started as a gate it waits, becomes the
// job, and never returns; in any other it does nothing.
func Gate() {
	if len(os.Args) > 3 && os.Args[0] == gateName {
		os.Exit(pass(os.Args[1], os.Args[2], os.Args[3:]))
	}
}

// pass waits at the descriptor named line, then becomes the program at path. It returns only if
// the job is cancelled or cannot be run.
func pass(line, path string, args []string) int {
	fd, err := strconv.Atoi(line)
	if err != nil {
		return fault.StatusUsage
	}
	fault.OnQuit()
	unix.CloseOnExec(fd)
	word := make([]byte, 4096) // whole, as it was written with one write(2)
	n, err := sysfile.Read(fd, word)
	if err != nil || n == 0 || word[0] != goAhead {
		return fault.StatusDenied
	}
	env := withEntry(os.Environ(), string(word[1:n]))
	err = execute(path, args, func(path string, args []string) error {
		return syscall.Exec(path, args, env)
	})
	var number syscall.Errno
	if errors.As(err, &number) {
		// Without the supervisor there is no reader left.
		_, _ = sysfile.Write(fd, []byte(strconv.Itoa(int(number))))
	}
	return fault.StatusNotRunnable
}
