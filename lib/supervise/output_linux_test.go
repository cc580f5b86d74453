package supervise

import (
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
	st := rehearse(t, setup{QuietOK: true, Args: sh("", "echo out; exit 8")})
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	reader.Close()
	defer writer.Close()
	st.cmd.Stdout = writer
	status, rep := st.play()
	if status != 8 || !strings.Contains(rep.Err, "standard output: ") || !strings.Contains(rep.Err, "broken pipe") {
		t.Errorf("status %d, error %q", status, rep.Err)
	}
}

func TestFullDiskIsTheJobsOwnWriteError(t *testing.T) {
	dir := t.TempDir()
	mount := exec.Command("unshare", "-m", "mount", "-t", "tmpfs", "none", dir)
	if err := mount.Run(); err != nil {
		need.Skip(t, "needs a mount namespace, to have a small disk: ", err)
	}
	t.Setenv("TMPDIR", dir)
	st := rehearse(t, setup{QuietOK: true, Args: sh(dir, `cat /dev/zero 2>"$1/said"; echo $? >"$1/status"; exit 1`)})
	st.setup.Args[4] = t.TempDir()
	st.cmd.Args[2] = `mount -t tmpfs -o size=64k none "$TMPDIR" && "$@"; exit $?`
	st.cmd.Path, st.cmd.Args = lookUp(t, "unshare"), append([]string{"unshare", "-m"}, st.cmd.Args...)
	status, _ := st.play()
	if status != 1 || pidIn(t, filepath.Join(st.setup.Args[4], "status")) != 1 {
		t.Errorf("status %d", status)
	}
	if said := read(t, filepath.Join(st.setup.Args[4], "said")); !strings.Contains(said, "No space left") {
		t.Errorf("the job said %q", said)
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
