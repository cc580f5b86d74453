package supervise

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/lib/killer"
	"adlock/test/support/must"
)

type signalled = killer.Signalled

// patience is far longer than anything here takes on a busy machine.
const patience = 90 * time.Second

// stage is one supervisor and its job.
type stage struct {
	t     *testing.T
	setup setup
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *strings.Builder
	over  chan error
}

// rehearse prepares a supervisor that has no terminal and leads no group.
func rehearse(t *testing.T, s setup) *stage {
	t.Helper()
	s.Report = filepath.Join(t.TempDir(), "report")
	if s.Pause == 0 {
		s.Pause = 300 * time.Millisecond
	}
	st := &stage{t: t, setup: s, out: new(strings.Builder), over: make(chan error, 1)}
	// The shell leads the session, so that the supervisor does not.
	st.cmd = exec.Command("/bin/sh", "-c", `"$@"; exit $?`, "sh", os.Args[0])
	st.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	st.cmd.Stdout, st.cmd.Stderr = st.out, st.out
	st.cmd.WaitDelay = patience
	return st
}

// begin starts the supervisor, and returns its first report.
func (st *stage) begin() report {
	st.t.Helper()
	text := must.Get(json.Marshal(st.setup))(st.t)
	st.cmd.Env = append(os.Environ(), "SUPERVISE_ROLE=supervisor", "SUPERVISE_SETUP="+string(text))
	if st.cmd.Stdin == nil {
		st.stdin = must.Get(st.cmd.StdinPipe())(st.t)
	}
	must.Do(st.t, st.cmd.Start())
	go func() { st.over <- st.cmd.Wait() }()
	st.t.Cleanup(st.cleanUp)
	await(st.t, "the supervisor's report", func() bool { return exists(st.setup.Report) })
	return st.report()
}

// cleanUp ends the processes that a failed test has left: the stage's group and the supervisor.
func (st *stage) cleanUp() {
	if !st.t.Failed() {
		return
	}
	st.t.Logf("output: %s", st.out)
	syscall.Kill(-st.cmd.Process.Pid, syscall.SIGKILL)
	if exists(st.setup.Report) {
		syscall.Kill(-st.report().PID, syscall.SIGKILL)
	}
}

// expire lets ExpireAfter be over.
func (st *stage) expire() {
	st.t.Helper()
	must.Do(st.t, os.WriteFile(st.setup.Limit, nil, 0o644))
}

// enforced is the setup of a supervisor that ends its job once expire is called.
func enforced(t *testing.T) setup {
	return setup{Enforce: true, ExpireAfter: time.Hour, Limit: filepath.Join(openToAll(t), "limit")}
}

// end waits for the supervisor to end, and returns its exit status in a shell's terms and its last report.
func (st *stage) end() (int, report) {
	st.t.Helper()
	select {
	case err := <-st.over:
		var status *exec.ExitError
		if err != nil && !errors.As(err, &status) {
			st.t.Fatal(err)
		}
	case <-time.After(patience):
		st.t.Fatal("the supervisor does not end")
	}
	if wait := st.cmd.ProcessState.Sys().(syscall.WaitStatus); wait.Signaled() {
		return 128 + int(wait.Signal()), st.report()
	}
	return st.cmd.ProcessState.ExitCode(), st.report()
}

// wantEnd waits for the supervisor to end, and wants this status and no error.
func (st *stage) wantEnd(want int) report {
	st.t.Helper()
	status, rep := st.end()
	if status != want || rep.Err != "" {
		st.t.Errorf("status %d, want %d; %+v, error %q", status, want, rep.Result, rep.Err)
	}
	return rep
}

// wantPlay starts the supervisor, and calls wantEnd.
func (st *stage) wantPlay(want int) report {
	st.t.Helper()
	st.begin()
	return st.wantEnd(want)
}

// play calls begin and then end.
func (st *stage) play() (int, report) {
	st.t.Helper()
	st.begin()
	return st.end()
}

func (st *stage) report() (rep report) {
	must.Do(st.t, json.Unmarshal(must.Get(os.ReadFile(st.setup.Report))(st.t), &rep))
	return rep
}

// sh is a job that is a shell script; "$1" is the test's directory.
func sh(dir, script string) []string { return []string{"/bin/sh", "-c", script, "job", dir} }

// await is a barrier: it returns when ok is true, and fails the test if that never happens.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// pidIn waits until file holds a whole line, and returns the number in it.
func pidIn(t *testing.T, file string) int {
	t.Helper()
	var text []byte
	await(t, file, func() bool {
		text, _ = os.ReadFile(file)
		return strings.HasSuffix(string(text), "\n")
	})
	return must.Get(strconv.Atoi(strings.TrimSpace(string(text))))(t)
}

// state is the state letter that /proc shows for pid, 0 if there is no such process.
func state(pid int) byte {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	return text[strings.LastIndexByte(string(text), ')')+2]
}

func lives(pid int) bool { s := state(pid); return s != 0 && s != 'Z' && s != 'X' }

func mustBeGone(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		if lives(pid) {
			t.Errorf("process %d lives on, state %c", pid, state(pid))
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

func signalTo(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	must.Do(t, syscall.Kill(pid, sig))
}

func read(t *testing.T, file string) string {
	t.Helper()
	text := must.Get(os.ReadFile(file))(t)
	return string(text)
}
