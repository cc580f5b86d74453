package helper

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"adlock/test/support/need"
)

// Result is how a command ended.
type Result struct {
	Status   int // as in a shell: 128+signal if a signal ended it
	Out, Err string
}

// Command is a command to run in a clean environment: that of the test (PATH, HOME, TMPDIR and so
// on) without settings of adlock and of the caller's shell, and what Env adds.
type Command struct {
	Args  []string
	Env   []string
	Dir   string
	Stdin string
	UID   int           // run as this user; 0: as the test
	Limit time.Duration // then the command is killed and the test fails; 0: Patience
}

// lag is how long a daemon may keep the pipes of a command that has ended.
const lag = time.Second

func (c Command) prepare(ctx context.Context) *exec.Cmd {
	command := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	command.Dir = c.Dir
	command.Env = append(need.Clean(), c.Env...)
	command.Stdin = strings.NewReader(c.Stdin)
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if c.UID != 0 {
		command.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(c.UID), Gid: uint32(c.UID)}
	}
	command.WaitDelay = lag // a daemon may keep its standard input
	return command
}

// Run runs the command to its end in a session of its own.
func (c Command) Run(t testing.TB) Result {
	t.Helper()
	if c.Limit == 0 {
		c.Limit = Patience
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.Limit)
	defer cancel()
	var out, trouble bytes.Buffer
	command, finish, err := c.start(ctx, &out, &trouble)
	if err == nil {
		err = command.Wait()
		finish()
	}
	if ctx.Err() != nil {
		t.Fatalf("%q took more than %v\n%s%s", c.Args, c.Limit, out.String(), trouble.String())
	}
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) && !errors.Is(err, exec.ErrWaitDelay) {
		t.Fatal(err)
	}
	return Result{status(command), out.String(), trouble.String()}
}

// start starts the command. A program that was just written is busy (ETXTBSY) while a child of
// another test, forked meanwhile, has it open for writing until its exec. finish is called once the
// command has ended.
func (c Command) start(ctx context.Context, out, trouble io.Writer) (command *exec.Cmd, finish func(), err error) {
	var pipes []*Output
	for _, to := range slices.Compact([]io.Writer{out, trouble}) {
		pipe, err := NewOutput(to)
		if err != nil {
			return nil, nil, err
		}
		pipes = append(pipes, pipe)
	}
	for end := time.Now().Add(Patience); ; time.Sleep(time.Millisecond) {
		command = c.prepare(ctx)
		command.Stdout, command.Stderr = pipes[0].Out, pipes[len(pipes)-1].Out
		if err = command.Start(); !errors.Is(err, syscall.ETXTBSY) || time.Now().After(end) {
			break
		}
	}
	finish = func() {
		for _, pipe := range pipes {
			pipe.Finish(lag)
		}
	}
	for _, pipe := range pipes {
		pipe.Started()
	}
	if err != nil {
		finish()
	}
	return command, finish, err
}

func status(command *exec.Cmd) int {
	wait := command.ProcessState.Sys().(syscall.WaitStatus)
	if wait.Signaled() {
		return 128 + int(wait.Signal())
	}
	return wait.ExitStatus()
}

// Process is a command that runs beside the test.
type Process struct {
	PID   int
	ended chan struct{}
	out   *buffer
	cmd   *exec.Cmd
}

// Start starts the command in a session of its own. Processes left in the session at the end of
// the test are killed.
func (c Command) Start(t testing.TB) *Process {
	t.Helper()
	p := &Process{ended: make(chan struct{}), out: new(buffer)}
	var finish func()
	var err error
	if p.cmd, finish, err = c.start(context.Background(), p.out, p.out); err != nil {
		t.Fatal(err)
	}
	p.PID = p.cmd.Process.Pid
	began := Began(p.PID)
	go func() {
		_ = p.cmd.Wait() // ProcessState has the status
		finish()
		close(p.ended)
	}()
	t.Cleanup(func() {
		if NotReused(p.PID, began) {
			KillSession(p.PID)
		}
		<-p.ended
		if said := p.out.String(); t.Failed() && said != "" {
			t.Logf("process %d said:\n%s", p.PID, said)
		}
	})
	return p
}

// Wait waits for the end of the process, and returns its status.
func (p *Process) Wait(t testing.TB) int {
	t.Helper()
	select {
	case <-p.ended:
		return status(p.cmd)
	case <-time.After(Patience):
		t.Fatalf("process %d still runs after %v\n%s", p.PID, Patience, p.out)
		return 0
	}
}

// Is waits for the end of the process, and fails the test unless it has the status and has printed the
// output, in which … stands for any text.
func (p *Process) Is(t testing.TB, status int, output string) {
	t.Helper()
	if got := p.Wait(t); got != status || !like(p.Output(), output) {
		t.Errorf("status %d, output %q; want %d, %q", got, p.Output(), status, output)
	}
}

// EndedBy waits for the end of the process, and returns the signal that it died of, or 0 if it
// exited.
func (p *Process) EndedBy(t testing.TB) syscall.Signal {
	t.Helper()
	p.Wait(t)
	if wait := p.cmd.ProcessState.Sys().(syscall.WaitStatus); wait.Signaled() {
		return wait.Signal()
	}
	return 0
}

// Ended reports whether the process has ended and been reaped.
func (p *Process) Ended() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Lives fails the test if the process has ended.
func (p *Process) Lives(t testing.TB) {
	t.Helper()
	if p.Ended() {
		t.Fatalf("%d has ended: %s", p.PID, p.Output())
	}
}

// Output is what the process has written so far, both streams.
func (p *Process) Output() string { return p.out.String() }

// Said returns the lines of adlock in the output. A shell in the job has its own ("Terminated") if
// it outlives a child that a signal ended.
func (p *Process) Said() string {
	var said strings.Builder
	for line := range strings.Lines(p.Output()) {
		if strings.HasPrefix(line, "adlock: ") {
			said.WriteString(line)
		}
	}
	return said.String()
}

// Kill ends the process, and it alone, with KILL.
func (p *Process) Kill(t testing.TB) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.Wait(t)
}

// Signal sends one signal to the process alone.
func (p *Process) Signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// buffer is a bytes.Buffer that may be read while it is written.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
