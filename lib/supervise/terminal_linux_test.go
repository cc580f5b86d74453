package supervise

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// onTerminal puts a rehearsed supervisor on a terminal of its own and returns the terminal's other end, for typing.
// In a script the supervisor leads no group; otherwise it leads the foreground group, as under an interactive shell.
func (st *stage) onTerminal(inScript bool) *os.File {
	st.t.Helper()
	master, slave := openPTY(st.t)
	st.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 3}
	st.cmd.ExtraFiles = []*os.File{slave}
	if !inScript {
		st.cmd.Path, st.cmd.Args = os.Args[0], []string{os.Args[0]}
	}
	return master
}

func openPTY(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		need.Skip(t, "needs a pseudo terminal: ", err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	must.Do(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number := must.Get(unix.IoctlGetInt(fd, unix.TIOCGPTN))(t)
	slave = must.Get(os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0))(t)
	t.Cleanup(func() { slave.Close() })
	return master, slave
}

func typeKey(t *testing.T, terminal *os.File, key byte) {
	t.Helper()
	must.Get(terminal.Write([]byte{key}))(t)
}

const controlC, controlBackslash, controlZ = 3, 28, 26

func TestAKeyboardSignalReachesEachProcessOnce(t *testing.T) {
	for _, inScript := range []bool{false, true} {
		var terminal *os.File
		st, rep, file := listening(t, func(st *stage) {
			if inScript { // the script's shell must not die first
				st.cmd.Args[2] = `trap : INT QUIT; "$@"; exit $?`
			}
			terminal = st.onTerminal(inScript)
		})
		if rep.Gate == 0 {
			t.Errorf("in a script %t: what is typed before the job begins would be lost", inScript)
		}
		for i, key := range []byte{controlC, controlBackslash} {
			typeKey(t, terminal, key)
			heard(t, file, i+2)
			heard(t, file+".child", i+2) // the runtime keeps no order of two signals that come together
		}
		// Only this signal is forwarded. When it arrives, the earlier signals have been handled.
		signalTo(t, rep.PID, syscall.SIGTERM)
		wantHeard(t, file, "interrupt,quit,terminated")
		wantHeard(t, file+".child", "interrupt,quit,terminated")
		st.listensNoMore()
	}
}

// No shell could continue a stopped process here, so the kernel stops none. A supervisor that
// stopped itself would hang for good.
func TestCtrlZWithoutJobControlStopsNoProcess(t *testing.T) {
	var terminal *os.File
	st, rep, file := listening(t, func(st *stage) { terminal = st.onTerminal(false) })
	typeKey(t, terminal, controlZ)
	signalTo(t, rep.PID, syscall.SIGUSR1)
	heard(t, file, 2)
	st.listensNoMore()
}

func TestCtrlBackslashEndsAWaiterWithoutAStackTrace(t *testing.T) {
	dir := t.TempDir()
	st := rehearse(t, setup{Hold: true, Args: sh(dir, `echo >"$1/ran"`)})
	terminal := st.onTerminal(false)
	rep := st.begin()
	for _, pid := range []int{rep.PID, rep.Gate} {
		await(t, "it listens", func() bool { return helper.Listens(pid, syscall.SIGQUIT) })
	}
	typeKey(t, terminal, controlBackslash)
	await(t, "the gate's end", func() bool { return !lives(rep.Gate) })
	if status, _ := st.end(); status != 131 || strings.Contains(st.out.String(), "goroutine") || exists(filepath.Join(dir, "ran")) {
		t.Errorf("status %d, output %q", status, st.out)
	}
}

func TestTheGateBecomesTheJobWithTheSamePid(t *testing.T) {
	dir := t.TempDir()
	st := rehearse(t, setup{Args: sh(dir, `echo $$ >"$1/pid"; ls /proc/self/fd >"$1/fds"; exit 4`), QuietOK: true})
	st.onTerminal(true)
	rep := st.begin()
	if status, _ := st.end(); status != 4 || rep.Gate == 0 {
		t.Errorf("status %d, gate %d", status, rep.Gate)
	}
	if pid := pidIn(t, filepath.Join(dir, "pid")); pid != rep.Gate {
		t.Errorf("the job is process %d, the gate was %d", pid, rep.Gate)
	}
	if got, want := read(t, filepath.Join(dir, "fds")), descriptorsWithout(t); got != want {
		t.Errorf("descriptors %q, want %q", got, want)
	}
}

func TestAGateThatIsCancelledOrOrphanedStartsNoJob(t *testing.T) {
	for _, cancel := range []bool{false, true} {
		dir := t.TempDir()
		st := rehearse(t, setup{Hold: !cancel, Cancel: cancel, Args: sh(dir, `echo >"$1/ran"`)})
		st.onTerminal(true)
		rep := st.begin()
		if cancel {
			st.wantEnd(0)
		} else {
			if rep.Gate == 0 || !lives(rep.Gate) {
				t.Fatalf("gate %d", rep.Gate)
			}
			signalTo(t, rep.PID, syscall.SIGKILL)
			await(t, "the gate's end", func() bool { return !lives(rep.Gate) })
			st.end()
		}
		mustBeGone(t, rep.Gate)
		if exists(filepath.Join(dir, "ran")) {
			t.Error("the job ran")
		}
	}
}

func TestKillingTheGateEndsTheJobBeforeItBegins(t *testing.T) {
	st := rehearse(t, setup{Hold: true, Args: sh("", "exit 0")})
	st.onTerminal(true)
	rep := st.begin()
	signalTo(t, rep.Gate, syscall.SIGKILL)
	await(t, "the gate's death", func() bool { return !lives(rep.Gate) })
	must.Get(st.stdin.Write([]byte("\n")))(t)
	st.wantEnd(137)
}

func TestEnforceEndsAJobOnATerminal(t *testing.T) {
	st := rehearse(t, setup{Enforce: true, ExpireAfter: 100 * time.Millisecond, Args: sh("", "sleep 300; sleep 300")})
	st.onTerminal(true)
	st.wantPlay(fault.StatusExpired)
}
