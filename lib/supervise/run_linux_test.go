package supervise

import (
	"adlock/lib/fault"
	"adlock/test/support/need"

	"adlock/test/support/must"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestAScriptWithoutAnInterpreterLineReadsStandardInput(t *testing.T) {
	script := executableFile(t, "cat; echo \"$1\"\n")
	st := rehearse(t, setup{Args: []string{script, "hello"}})
	st.cmd.Stdin = strings.NewReader("from input\n")
	if st.wantPlay(0); st.out.String() != "from input\nhello\n" {
		t.Errorf("output %q", st.out)
	}
}

func TestABinaryThatIsNoProgramIsAnExecFormatError(t *testing.T) {
	file := executableFile(t, "\x00\x01\x02")
	for _, gated := range []bool{false, true} {
		st := rehearse(t, setup{Args: []string{file}})
		if gated {
			st.onTerminal(true)
		}
		status, rep := st.play()
		if status != fault.StatusNotRunnable || rep.Result.Started || rep.Err != file+": exec format error" {
			t.Errorf("gated %v: status %d, %+v, error %q", gated, status, rep.Result, rep.Err)
		}
	}
}

func executableFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	must.Do(t, need.WriteProgram(path, []byte(content), 0o755))
	return path
}

func TestSupervisorAndJobStayInTheCallersGroup(t *testing.T) {
	dir := t.TempDir()
	st := rehearse(t, setup{Args: sh(dir, `read -r _ _ _ _ group _ </proc/self/stat; echo "$group" >"$1/group"`)})
	rep := st.begin()
	st.end()
	if rep.Group == rep.PID || rep.Gate != 0 {
		t.Errorf("supervisor %d is in group %d, gate %d", rep.PID, rep.Group, rep.Gate)
	}
	if group := pidIn(t, dir+"/group"); group != rep.Group {
		t.Errorf("the job's group is %d, its supervisor's %d", group, rep.Group)
	}
}

func TestDaemonsAreLeftAloneAfterANormalEnd(t *testing.T) {
	dir := t.TempDir()
	rep := rehearse(t, setup{Args: sh(dir, `exec </dev/null >/dev/null 2>&1
		setsid sleep 300 & echo $! >"$1/session"
		sleep 300 & echo $! >"$1/group"
		exit 4`)}).wantPlay(4)
	if rep.Result.Ended || len(rep.Signals) != 0 {
		t.Errorf("%+v, signals %v", rep.Result, rep.Signals)
	}
	for _, name := range []string{"session", "group"} {
		pid := pidIn(t, filepath.Join(dir, name))
		if !lives(pid) {
			t.Errorf("the daemon %q was ended", name)
		}
		signalTo(t, pid, syscall.SIGKILL)
	}
}

func TestAJobHasTheCallersDescriptorsAndNoOthers(t *testing.T) {
	want := descriptorsWithout(t)
	for _, quiet := range []bool{false, true} {
		dir := t.TempDir()
		st := rehearse(t, setup{QuietOK: quiet, Args: sh(dir, `ls /proc/self/fd >"$1/fds"; echo word >&3`)})
		third := third(t, dir)
		st.cmd.ExtraFiles = []*os.File{third}
		st.play()
		if got := read(t, filepath.Join(dir, "fds")); got != want {
			t.Errorf("quiet %t: descriptors %q, want %q", quiet, got, want)
		}
		if got := read(t, third.Name()); got != "word\n" {
			t.Errorf("quiet %t: descriptor 3 got %q", quiet, got)
		}
	}
}

// descriptorsWithout lists the open files of a job with a descriptor 3 and no supervisor. They may
// include files that the test runner has left open.
func descriptorsWithout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	job := sh(dir, `ls /proc/self/fd >"$1/fds"`)
	cmd := exec.Command(job[0], job[1:]...)
	cmd.ExtraFiles = []*os.File{third(t, dir)}
	must.Do(t, cmd.Run())
	return read(t, filepath.Join(dir, "fds"))
}

// third is the file for a job's descriptor 3.
func third(t *testing.T, dir string) *os.File {
	file := must.Get(os.Create(filepath.Join(dir, "third")))(t)
	t.Cleanup(func() { file.Close() })
	return file
}

func TestAnOrphanIsReapedAndTheCommandsStatusCounts(t *testing.T) {
	dir := t.TempDir()
	// Once its parent is gone, the orphan's parent is the supervisor.
	st := rehearse(t, setup{Args: sh(dir, `mkfifo "$1/end"
		sh -c '(read x <"$1/end"; exit 9) & echo $! >"$1/orphan"' sh "$1"
		read x <"$1/end"; exit 5`)})
	rep := st.begin()
	orphan := pidIn(t, filepath.Join(dir, "orphan"))
	await(t, "the supervisor to adopt the orphan", func() bool { return parentOf(t, orphan) == rep.PID })
	signalTo(t, orphan, syscall.SIGKILL)
	await(t, "the orphan to be reaped", func() bool { return state(orphan) == 0 })
	must.Do(t, os.WriteFile(filepath.Join(dir, "end"), []byte("\n"), 0))
	st.wantEnd(5)
}

func parentOf(t *testing.T, pid int) int {
	t.Helper()
	text := read(t, "/proc/"+strconv.Itoa(pid)+"/stat")
	return must.Get(strconv.Atoi(strings.Fields(text[strings.LastIndexByte(text, ')')+1:])[1]))(t)
}
