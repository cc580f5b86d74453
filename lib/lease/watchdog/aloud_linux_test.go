package watchdog

import (
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/process"
	"adlock/test/support/must"
	_ "adlock/test/support/need" // the same environment, however the suite is started
)

// job starts a shell script and redirects its standard error to a file that has content already.
func job(t *testing.T, script string) (of process.Job, file string, end func()) {
	t.Helper()
	file = t.TempDir() + "/errors"
	errors := must.Get(os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600))(t)
	defer errors.Close()
	must.Get(errors.WriteString("before\n"))(t)
	sh := exec.Command("sh", "-c", script)
	sh.Stderr, sh.SysProcAttr = errors, &syscall.SysProcAttr{Setpgid: true}
	out := must.Get(sh.StdoutPipe())(t)
	must.Do(t, sh.Start())
	t.Cleanup(func() { _ = unix.Kill(-sh.Process.Pid, unix.SIGKILL) })
	must.Get(out.Read(make([]byte, 1)))(t)
	owner := must.Get(process.Of(sh.Process.Pid))(t)
	return process.Job{Owner: owner, FileUID: -1}, file, func() {
		_ = sh.Process.Kill()
		_, _ = io.Copy(io.Discard, out) // until no child has it open any more
		_ = sh.Wait()
	}
}

// told prints the warnings as a watchdog of the job j does, and returns what is then in the file.
func told(t *testing.T, j process.Job, file string, warnings ...string) string {
	t.Helper()
	own := must.Get(unix.FcntlInt(2, unix.F_DUPFD_CLOEXEC, 3))(t)
	defer unix.Close(own)
	defer func() { _ = unix.Dup3(own, 2, 0) }()
	null := must.Get(os.OpenFile(os.DevNull, os.O_WRONLY, 0))(t)
	defer null.Close()
	must.Do(t, unix.Dup3(int(null.Fd()), 2, 0))
	SpeakFor(j)
	for _, w := range warnings {
		fault.Warn("x", w)
	}
	return string(must.Get(os.ReadFile(file))(t))
}

func TestAWatchdogAppendsToTheJobsStandardError(t *testing.T) {
	j, file, end := job(t, "echo; exec sleep 60")
	defer end()
	if said := told(t, j, file, "first", "second"); said != "before\nadlock: x: first\nadlock: x: second\n" {
		t.Errorf("%q", said)
	}
}

func TestAWatchdogOfADeadOwnerUsesAMembersStandardError(t *testing.T) {
	t.Setenv(process.MarkVariable, process.AddMark(nil, process.Claim{PID: 1, Token: "feed", File: "f"})[len(process.MarkVariable)+1:])
	j, file, end := job(t, "(echo; exec sleep 60 >/dev/null) & wait")
	j.Token, j.Owner.PGID = "feed", 1 // 'adlock run' of a script leads no group: only the mark shows its job
	end()
	if said := told(t, j, file, "told"); said != "before\nadlock: x: told\n" {
		t.Errorf("%q", said)
	}
}

func TestAWatchdogDoesNotWriteToAProcessWithAReusedPID(t *testing.T) {
	j, file, end := job(t, "echo; exec sleep 60")
	defer end()
	j.Owner.Start, j.Owner.Inode = j.Owner.Start+1, j.Owner.Inode+1 // as if another process had this pid now
	if said := told(t, j, file, "told"); said != "before\n" {
		t.Errorf("%q", said)
	}
}
