package supervise

import (
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"adlock/lib/fault"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

func TestOutputHeldByQuietOKHasNoNameInTMPDIR(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	st := rehearse(t, setup{QuietOK: true, Args: sh(dir, `ls -A "$1" >&3`)})
	third := third(t, t.TempDir())
	st.cmd.ExtraFiles = []*os.File{third}
	if st.wantPlay(0); read(t, third.Name()) != "" {
		t.Errorf("in the temporary directory: %q", read(t, third.Name()))
	}
}

func TestQuietOKReportsABrokenPipe(t *testing.T) {
	for name, of := range map[string]func(*exec.Cmd) *io.Writer{
		"standard output": func(c *exec.Cmd) *io.Writer { return &c.Stdout },
		"standard error":  func(c *exec.Cmd) *io.Writer { return &c.Stderr },
	} {
		st := rehearse(t, setup{QuietOK: true, Args: sh("", "echo word; echo word >&2; exit 8")})
		reader, writer, err := os.Pipe()
		must.Do(t, err)
		reader.Close()
		defer writer.Close()
		*of(st.cmd) = writer
		status, rep := st.play()
		if status != 8 || rep.Err != name+": write: broken pipe" || st.out.String() != "word\n" {
			t.Errorf("%s: status %d, output %q, error %q", name, status, st.out, rep.Err)
		}
	}
}

func TestASignalEndsThePrintingOfKeptOutput(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGQUIT} {
		reader, writer, err := os.Pipe()
		must.Do(t, err)
		defer reader.Close()
		st := rehearse(t, setup{QuietOK: true, Args: sh("", "head -c 1000000 /dev/zero; exit 8")})
		st.cmd.Stdout = writer
		rep := st.begin()
		writer.Close()
		must.Get(reader.Read(make([]byte, 1)))(t) // it prints
		signalTo(t, rep.PID, sig)
		st.wantEnd(128 + int(sig))
	}
}

func TestOutputThatMayBeIncompleteIsReported(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	if err := exec.Command("unshare", "-m", "true").Run(); err != nil {
		need.Skip(t, "needs a mount namespace, to have a small disk: ", err)
	}
	const because = "the output may be incomplete: --quiet-ok keeps it in "
	memory := because + "memory: file too large"
	disk := because + "TMPDIR, " + os.Getenv("TMPDIR") + ": no space left on device"
	const (
		full    = `mount -t tmpfs -o size=64k none "$TMPDIR" && "$@"; exit $?`
		missing = `TMPDIR=/nonexist "$@"; exit $?`
		small   = `ulimit -f 8; "$@"; exit $?`
		much    = "seq 100000 199999 2>/dev/null; exit "
	)
	for claim, c := range map[string]struct {
		noMemory  bool
		way       string
		job       string
		status    int
		shown     int
		complaint string
	}{
		"a success on a full disk":  {true, full, much + "0", 0, 0, disk},
		"a failure on a full disk":  {true, full, much + "5", 5, 65536, disk},
		"a disk with room":          {true, full, "seq 100000 100999; exit 5", 5, 7000, ""},
		"memory beside a full disk": {false, full, much + "5", 5, 700000, ""},
		"a success in memory":       {false, full, much + "0", 0, 0, ""},
		"memory without TMPDIR":     {false, missing, much + "5", 5, 700000, ""},
		"the largest size of files": {false, small, "trap '' XFSZ; " + much + "5", 5, 4096, memory},
	} {
		st := rehearse(t, setup{QuietOK: true, NoMemory: c.noMemory, Args: sh("", c.job)})
		st.cmd.Path, st.cmd.Args = lookUp(t, "unshare"), append([]string{"unshare", "-m"}, st.cmd.Args...)
		st.cmd.Args[4] = c.way
		if got, rep := st.play(); got != c.status || st.out.Len() != c.shown || rep.Err != c.complaint {
			t.Errorf("%s: status %d instead of %d, %d bytes shown, error %q", claim, got, c.status, st.out.Len(), rep.Err)
		}
	}
}

func TestQuietOKsErrorNamesAMissingTMPDIR(t *testing.T) {
	t.Setenv("TMPDIR", "/nonexist")
	_, err := newTemporary()
	want := "job: --quiet-ok keeps the output in TMPDIR, /nonexist: no such file or directory"
	if got := fault.Wrap("job", err); got == nil || got.Error() != want {
		t.Errorf("%v instead of %s", got, want)
	}
}

func lookUp(t *testing.T, command string) string {
	t.Helper()
	path, err := exec.LookPath(command)
	if err != nil {
		need.Skip(t, err)
	}
	return path
}
