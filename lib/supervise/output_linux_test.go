package supervise

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"adlock/test/need"
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

func TestFullDiskIsTheJobsOwnWriteError(t *testing.T) {
	for _, apart := range []bool{false, true} {
		dir := t.TempDir()
		mount := exec.Command("unshare", "-m", "mount", "-t", "tmpfs", "none", dir)
		if err := mount.Run(); err != nil {
			need.Skip(t, "needs a mount namespace, to have a small disk: ", err)
		}
		t.Setenv("TMPDIR", dir)
		st := rehearse(t, setup{QuietOK: true, Args: sh(dir, `echo first >&2; cat /dev/zero 2>"$1/said"; echo $? >"$1/status"; exit 1`)})
		st.setup.Args[4] = t.TempDir()
		st.cmd.Args[2] = `mount -t tmpfs -o size=64k none "$TMPDIR" && "$@"; exit $?`
		st.cmd.Path, st.cmd.Args = lookUp(t, "unshare"), append([]string{"unshare", "-m"}, st.cmd.Args...)
		trouble := st.out
		if apart {
			trouble = new(strings.Builder)
			st.cmd.Stderr = trouble
		}
		status, rep := st.play()
		if status != 1 || pidIn(t, filepath.Join(st.setup.Args[4], "status")) != 1 || rep.Err != "" {
			t.Errorf("apart %t: status %d, error %q", apart, status, rep.Err)
		}
		if said := read(t, filepath.Join(st.setup.Args[4], "said")); !strings.Contains(said, "No space left") {
			t.Errorf("apart %t: the job said %q", apart, said)
		}
		if !strings.HasPrefix(trouble.String(), "first\n") {
			t.Errorf("apart %t: what was held back before is lost", apart)
		}
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
