package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	role    = "ADLOCK_PROCESS_TEST_ROLE" // what the re-executed test binary plays
	patient = 20 * time.Second           // far more than a busy machine needs
	nobody  = 65534
)

// roles are what this binary can be as a second process; each returns its
// exit status.
var roles = map[string]func(args []string) int{}

func init() {
	runtime.LockOSThread() // "leaderless" exits the main thread
}

func TestMain(m *testing.M) {
	if play := roles[os.Getenv(role)]; play != nil {
		os.Exit(play(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// actor is a second process, ended and waited for when the test ends.
type actor struct {
	*exec.Cmd
	t    *testing.T
	out  bytes.Buffer
	once sync.Once
	err  error // of waiting
}

// play starts this binary in a role.
func play(t *testing.T, attr syscall.SysProcAttr, part string, args ...string) *actor {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), role+"="+part)
	return launch(t, attr, cmd)
}

func shell(t *testing.T, attr syscall.SysProcAttr, script string, args ...string) *actor {
	t.Helper()
	return launch(t, attr, exec.Command("/bin/sh", append([]string{"-c", script, "sh"}, args...)...))
}

func sleeper(t *testing.T, attr syscall.SysProcAttr) *actor {
	t.Helper()
	return launch(t, attr, exec.Command("sleep", "100"))
}

func launch(t *testing.T, attr syscall.SysProcAttr, cmd *exec.Cmd) *actor {
	t.Helper()
	a := &actor{Cmd: cmd, t: t}
	cmd.SysProcAttr = &attr
	cmd.WaitDelay = time.Second // a leftover that holds the pipe must not hang the test
	cmd.Stdout, cmd.Stderr = &a.out, &a.out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if attr.Setpgid && attr.Pgid == 0 {
			unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
		}
		cmd.Process.Kill()
		a.wait()
	})
	return a
}

func (a *actor) wait() { a.once.Do(func() { a.err = a.Wait() }) }

func (a *actor) pid() int { return a.Process.Pid }

func (a *actor) id() Identity {
	a.t.Helper()
	id, err := Of(a.pid())
	if err != nil {
		a.t.Fatal(err)
	}
	return id
}

// eventually is a barrier: it fails the test when the claim never holds.
func eventually(t *testing.T, claim string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patient); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", claim)
		}
	}
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

// pidIn waits for a pid that a fixture wrote as a whole line.
func pidIn(t *testing.T, path string) int {
	t.Helper()
	pid := 0
	eventually(t, path+" holds a pid", func() bool {
		text, err := os.ReadFile(path)
		if err != nil || !bytes.HasSuffix(text, []byte("\n")) {
			return false
		}
		pid, err = strconv.Atoi(string(bytes.TrimSpace(text)))
		return err == nil
	})
	t.Cleanup(func() { unix.Kill(pid, unix.SIGKILL) })
	return pid
}

// state is the letter in /proc/PID/stat, "" when gone.
func state(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	return string(text[bytes.LastIndexByte(text, ')')+2])
}

func gone(pid int) bool { return !PIDLives(pid) }

// recorder collects what a Killer observed, as "PID SIGNAL".
type recorder struct{ sent []string }

func (r *recorder) killer(pause time.Duration) Killer {
	return Killer{Pause: pause, Observe: func(s Signalled) {
		r.sent = append(r.sent, fmt.Sprint(s.PID, " ", s.Signal))
	}}
}

// to returns the signals sent to pid, in order.
func (r *recorder) to(pid int) string {
	var list []string
	for _, line := range r.sent {
		if sig, ok := strings.CutPrefix(line, strconv.Itoa(pid)+" "); ok {
			list = append(list, sig)
		}
	}
	return strings.Join(list, " ")
}

func mustEnd(t *testing.T, k Killer, job Job) {
	t.Helper()
	if err := k.End(job); err != nil {
		t.Fatalf("End: %v", err)
	}
}

func mustStick(t *testing.T, err, want error) {
	t.Helper()
	var stuck *StuckError
	if !errors.Is(err, want) || !errors.As(err, &stuck) {
		t.Fatalf("got %v, want stuck with: %v", err, want)
	}
}

var leads = syscall.SysProcAttr{Setpgid: true}

func file(t *testing.T, name string) string { return filepath.Join(t.TempDir(), name) }
