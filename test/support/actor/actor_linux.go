// Package actor has second processes, which tests start, examine and end.
package actor

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/test/support/helper"
	"adlock/test/support/need"
)

const (
	Role    = "ADLOCK_TEST_ROLE" // the role that the re-executed test binary plays
	Patient = 60 * time.Second   // far longer than a busy machine needs
	Nobody  = 65534
)

// Brief is a pause between signals, for jobs that outlive one: the children that a shell starts
// with & ignore INT.
const Brief = 100 * time.Millisecond

// Roles are what this binary does as a second process; each returns its exit status.
var Roles = map[string]func(args []string) int{}

func init() {
	runtime.LockOSThread() // "leaderless" exits the main thread
	Roles["leaderless"] = func(args []string) int {
		go func() {
			os.WriteFile(args[0], nil, 0o600)
			time.Sleep(Patient)
			os.Exit(0)
		}()
		unix.Syscall(unix.SYS_EXIT, 0, 0, 0) // this thread only
		return 1
	}
	// Runs as root in a mount namespace of its own: mounts /proc so that it hides others'
	// processes (hidepid), and plays the role args[0] as an unprivileged user.
	Roles["lookout"] = func(args []string) int {
		if syscall.Mount("proc", "/proc", "proc", 0, "hidepid=2") != nil {
			return 2
		}
		cmd := exec.Command(os.Args[0], args[1:]...)
		cmd.Env = append(os.Environ(), Role+"="+args[0])
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: Nobody, Gid: Nobody}}
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if cmd.Run() != nil {
			return 1
		}
		return 0
	}
}

// Main runs a role or the tests; TestMain calls it.
func Main(m *testing.M) {
	if play := Roles[os.Getenv(Role)]; play != nil {
		os.Exit(play(os.Args[1:]))
	}
	// With umask 077 go builds this program for its owner alone, but an unprivileged user runs it
	// too.
	if err := os.Chmod("/proc/self/exe", 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(m.Run())
}

// Actor is a second process; the end of the test ends and reaps it.
type Actor struct {
	*exec.Cmd
	T    *testing.T
	Out  bytes.Buffer
	Err  error // what Wait returned
	once sync.Once

	output *helper.Output
	alone  bool
}

// Play starts this binary in a role.
func Play(t *testing.T, attr syscall.SysProcAttr, part string, args ...string) *Actor {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), Role+"="+part)
	return Launch(t, attr, cmd)
}

// Shell starts a shell with a script.
func Shell(t *testing.T, attr syscall.SysProcAttr, script string, args ...string) *Actor {
	t.Helper()
	return Launch(t, attr, exec.Command("/bin/sh", append([]string{"-c", script, "sh"}, args...)...))
}

// Sleeper starts a process that does nothing.
func Sleeper(t *testing.T, attr syscall.SysProcAttr) *Actor {
	t.Helper()
	return Launch(t, attr, exec.Command("sleep", "100"))
}

// Launch starts a command.
func Launch(t *testing.T, attr syscall.SysProcAttr, cmd *exec.Cmd) *Actor {
	t.Helper()
	a := &Actor{Cmd: cmd, T: t}
	cmd.SysProcAttr = &attr
	var err error
	if a.output, err = helper.NewOutput(&a.Out); err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = a.output.Out, a.output.Out
	err = cmd.Start()
	a.output.Started()
	if attr.Cloneflags != 0 && errors.Is(err, syscall.EPERM) {
		need.Skip(t, "no namespaces to be had:", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	began := helper.Began(a.PID())
	t.Cleanup(func() {
		if attr.Setpgid && attr.Pgid == 0 && helper.NotReused(a.PID(), began) {
			unix.Kill(-a.PID(), unix.SIGKILL)
		}
		cmd.Process.Kill()
		a.Await()
	})
	return a
}

// Await waits until the process has ended, and then for a second until no other process has its
// standard output.
func (a *Actor) Await() { a.await(time.Second) }

// Alone is Await with patience, and returns false if another process still has the standard output.
func (a *Actor) Alone() bool {
	a.await(Patient)
	return a.alone
}

func (a *Actor) await(others time.Duration) {
	a.once.Do(func() {
		a.Err = a.Cmd.Wait()
		a.alone = a.output.Finish(others)
	})
}

// Kill ends the process and reaps it.
func (a *Actor) Kill() {
	a.Process.Kill()
	a.Await()
}

// Stop stops the process: any signal but KILL or CONT stays pending.
func (a *Actor) Stop() {
	a.T.Helper()
	unix.Kill(a.PID(), unix.SIGSTOP)
	Eventually(a.T, "stopped", func() bool { return State(a.PID()) == "T" })
}

// Said awaits the process, and returns what it has written.
func (a *Actor) Said() string {
	a.Await()
	return a.Out.String()
}

// Set gives a variable another value until the end of the test.
func Set[V any](t *testing.T, variable *V, value V) {
	before := *variable
	t.Cleanup(func() { *variable = before })
	*variable = value
}

// PID is the pid of the process.
func (a *Actor) PID() int { return a.Process.Pid }

// Eventually is a barrier: it fails the test if the claim does not come true.
func Eventually(t *testing.T, claim string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(Patient); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", claim)
		}
	}
}

// Exists reports whether the file exists.
func Exists(path string) bool { _, err := os.Stat(path); return err == nil }

// PIDIn waits for a pid that a fixture wrote as a whole line.
func PIDIn(t *testing.T, path string) int {
	t.Helper()
	pid := 0
	Eventually(t, path+" holds a pid", func() bool {
		text, err := os.ReadFile(path)
		if err != nil || !bytes.HasSuffix(text, []byte("\n")) {
			return false
		}
		pid, err = strconv.Atoi(string(bytes.TrimSpace(text)))
		return err == nil
	})
	helper.EndsWith(t, pid)
	return pid
}

// State is the letter in /proc/PID/stat, "" when gone.
func State(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	return string(text[bytes.LastIndexByte(text, ')')+2])
}

// gone reports whether the process has ended; it may be a zombie.
func (a *Actor) gone() bool { return !helper.Alive(a.PID()) }

// Leads makes a process lead a group of its own.
var Leads = syscall.SysProcAttr{Setpgid: true}

// Apart makes a process lead a group and a session of its own. A process that shows no environment has
// to be apart: in the session of the tests it would keep every owner's death in doubt.
var Apart = syscall.SysProcAttr{Setsid: true}

// File returns a path in a new directory of the test.
func File(t *testing.T, name string) string { return filepath.Join(t.TempDir(), name) }

// Undying lets a process outlive KILL until letGo is called: the tracer stops it at its exit
// (PTRACE_EVENT_EXIT, ptrace(2)).
func Undying(t *testing.T, a *Actor) (letGo func()) {
	t.Helper()
	const seize, traceExit = 0x4206, 0x40
	seized, release := make(chan syscall.Errno), make(chan struct{})
	go func() {
		runtime.LockOSThread() // the tracer; it detaches when it ends with this function
		_, _, err := unix.RawSyscall6(unix.SYS_PTRACE, seize, uintptr(a.PID()), 0, traceExit, 0, 0)
		seized <- err
		<-release
	}()
	if err := <-seized; err != 0 {
		t.Fatal("ptrace: ", err)
	}
	letGo = sync.OnceFunc(func() { close(release) })
	t.Cleanup(func() {
		a.Process.Kill()
		letGo()
		Eventually(t, "it is dead after all", a.gone)
	})
	return letGo
}

// FewFiles lets this process open only left more descriptors, until the returned function is
// called: the next open fails with EMFILE. With none left, that holds even if another goroutine, such as
// that of the finalizers, closes a file meanwhile.
func FewFiles(t *testing.T, left int) (enough func()) {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	free, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(free)
	few := limit
	if few.Cur = uint64(free + left); left == 0 {
		few.Cur = 3 // standard input, output and error are open
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	enough = sync.OnceFunc(func() { unix.Setrlimit(unix.RLIMIT_NOFILE, &limit) })
	t.Cleanup(enough)
	return enough
}

// OpenFiles returns how many files this process has open.
func OpenFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// Atoi reads a number.
func Atoi(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
