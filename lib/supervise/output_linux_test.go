package supervise

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"adlock/lib/fault"
	"adlock/test/support/need"
)

func TestQuietShowsNothingOfASuccess(t *testing.T) {
	st := rehearse(t, setup{QuietOK: true, Args: sh("", "echo out; echo err >&2")})
	if status, rep := st.play(); status != 0 || st.out.String() != "" || rep.Err != "" {
		t.Errorf("status %d, output %q, error %q", status, st.out, rep.Err)
	}
}

func TestQuietShowsAFailureInTheOrderOfWriting(t *testing.T) {
	st := rehearse(t, setup{QuietOK: true, Args: sh("", "echo 1; echo 2 >&2; echo 3; exit 8")})
	if status, rep := st.play(); status != 8 || st.out.String() != "1\n2\n3\n" || rep.Err != "" {
		t.Errorf("status %d, output %q, error %q", status, st.out, rep.Err)
	}
}

func TestQuietKeepsTwoStreamsApart(t *testing.T) {
	st := rehearse(t, setup{QuietOK: true, Args: sh("", "echo 1; echo 2 >&2; echo 3; echo 4 >&2; exit 8")})
	var trouble strings.Builder
	st.cmd.Stderr = &trouble
	if status, rep := st.play(); status != 8 || st.out.String() != "1\n3\n" || trouble.String() != "2\n4\n" || rep.Err != "" {
		t.Errorf("status %d, output %q and %q, error %q", status, st.out, &trouble, rep.Err)
	}
}

func TestQuietLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	st := rehearse(t, setup{QuietOK: true, Args: sh(dir, `ls -A "$1" >&3`)})
	third := third(t, t.TempDir())
	st.cmd.ExtraFiles = []*os.File{third}
	if status, _ := st.play(); status != 0 || read(t, third.Name()) != "" {
		t.Errorf("status %d, in the temporary directory: %q", status, read(t, third.Name()))
	}
}

func TestQuietReportsAReaderThatWentAway(t *testing.T) {
	for name, of := range map[string]func(*exec.Cmd) *io.Writer{
		"standard output": func(c *exec.Cmd) *io.Writer { return &c.Stdout },
		"standard error":  func(c *exec.Cmd) *io.Writer { return &c.Stderr },
	} {
		st := rehearse(t, setup{QuietOK: true, Args: sh("", "echo word; echo word >&2; exit 8")})
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		reader.Close()
		defer writer.Close()
		*of(st.cmd) = writer
		status, rep := st.play()
		if status != 8 || rep.Err != name+": write: broken pipe" || st.out.String() != "word\n" {
			t.Errorf("%s: status %d, output %q, error %q", name, status, st.out, rep.Err)
		}
	}
}

func TestQuietDoesNotNeedTMPDIR(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	if err := exec.Command("unshare", "-m", "true").Run(); err != nil {
		need.Skip(t, "needs a mount namespace, to have a small disk: ", err)
	}
	for name, way := range map[string]string{
		"full":    `mount -t tmpfs -o size=64k none "$TMPDIR" && "$@"; exit $?`,
		"missing": `TMPDIR=/nonexist "$@"; exit $?`,
	} {
		for status, shown := range []int{0, 600000} {
			st := rehearse(t, setup{QuietOK: true, Args: sh("", fmt.Sprintf(`seq 100000 199999 | head -c 600000 && exit %d; exit 9`, status))})
			st.cmd.Path, st.cmd.Args = lookUp(t, "unshare"), append([]string{"unshare", "-m"}, st.cmd.Args...)
			st.cmd.Args[4] = way
			if got, rep := st.play(); got != status || st.out.Len() != shown || rep.Err != "" {
				t.Errorf("TMPDIR is %s: status %d instead of %d, %d bytes shown, error %q", name, got, status, st.out.Len(), rep.Err)
			}
		}
	}
}

func TestOutputThatMayBeIncompleteIsReported(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	if err := exec.Command("unshare", "-m", "true").Run(); err != nil {
		need.Skip(t, "needs a mount namespace, to have a small disk: ", err)
	}
	disk := "the output may be incomplete: --quiet-ok keeps it in TMPDIR, " + os.Getenv("TMPDIR") + ": no space left on device"
	const onDisk = `mount -t tmpfs -o size=64k none "$TMPDIR" && "$@"; exit $?`
	for claim, c := range map[string]struct {
		noMemory  bool
		way       string
		job       string
		status    int
		shown     int
		complaint string
	}{
		"a success on a full disk":  {true, onDisk, "seq 100000 199999 2>/dev/null; exit 0", 0, 0, disk},
		"a failure on a full disk":  {true, onDisk, "seq 100000 199999 2>/dev/null; exit 5", 5, 65536, disk},
		"a disk with room":          {true, onDisk, "seq 100000 100999; exit 5", 5, 7000, ""},
		"memory":                    {false, onDisk, "seq 100000 199999; exit 5", 5, 700000, ""},
		"the largest size of files": {false, `ulimit -f 8; "$@"; exit $?`, "trap '' XFSZ; seq 100000 199999 2>/dev/null; exit 5", 5, 4096, "the output may be incomplete: --quiet-ok keeps it in memory: file too large"},
	} {
		st := rehearse(t, setup{QuietOK: true, NoMemory: c.noMemory, Args: sh("", c.job)})
		st.cmd.Path, st.cmd.Args = lookUp(t, "unshare"), append([]string{"unshare", "-m"}, st.cmd.Args...)
		st.cmd.Args[4] = c.way
		if got, rep := st.play(); got != c.status || st.out.Len() != c.shown || rep.Err != c.complaint {
			t.Errorf("%s: status %d instead of %d, %d bytes shown, error %q", claim, got, c.status, st.out.Len(), rep.Err)
		}
	}
}

func TestAMissingTMPDIRIsNamed(t *testing.T) {
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
