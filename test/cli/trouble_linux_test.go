package cli

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// In these tests the lock directory cannot be used.

// small is an atom whose lock directory is a small file system of its own.
func small(t *testing.T) *helper.Atom {
	t.Helper()
	need.Root(t)
	a := helper.NewAtom(t)
	if err := unix.Mount("trouble", a.Dir, "tmpfs", 0, "size=64k,mode=0700"); err != nil {
		need.Skip(t, "cannot mount a tmpfs:", err)
	}
	dir := a.Dir
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return a
}

// fill makes the atom's last lock, and fills the file system of its lock directory.
func fill(t *testing.T, a *helper.Atom) {
	t.Helper()
	must(t, os.WriteFile(a.Last(), nil, 0o600))
	must(t, os.Chtimes(a.Last(), time.Unix(0, 0), time.Unix(0, 0)))
	if err := os.WriteFile(filepath.Join(a.Dir, "filler"), make([]byte, 1<<20), 0o600); err == nil {
		t.Fatal("the file system takes a megabyte")
	}
}

// troubles are unusable lock directories, each with its status and message.
var troubles = map[string]struct {
	make   func(t *testing.T) *helper.Atom
	status int
	said   string
}{
	"full": {func(t *testing.T) *helper.Atom {
		a := small(t)
		fill(t, a)
		return a
	}, 74, "{dir}: no space left on device"},
	"read-only": {func(t *testing.T) *helper.Atom {
		a := small(t)
		must(t, os.WriteFile(a.Last(), nil, 0o600))
		must(t, unix.Mount("", a.Dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
		return a
	}, 73, "{dir}: read-only file system"},
	"missing": {func(t *testing.T) *helper.Atom {
		a := small(t)
		must(t, unix.Mount("", a.Dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
		a.Dir += "/locks"
		return a
	}, 73, "{dir}: mkdir: read-only file system (name one of your own: ADLOCK_DIR)"},
	"another's": {func(t *testing.T) *helper.Atom {
		need.Root(t)
		a := helper.NewAtom(t)
		must(t, os.Chown(a.Dir, 4711, 4711))
		return a
	}, 77, "{dir}: lock directory belongs to another user (run as that user: sudo -u '#4711' adlock ..., or name one of your own: ADLOCK_DIR)"},
}

// hear gives the atom's newcomers a hook, and a runlog in another directory.
func hear(t *testing.T, a *helper.Atom) (dir string) {
	t.Helper()
	dir = helper.Dir(t)
	a.More = append(a.More, "ADLOCK_LOGDIR="+dir, `ADLOCK_HOOK=echo "$ADLOCK_EVENT $ADLOCK_ATOM $ADLOCK_STATUS: $ADLOCK_TEXT" >>`+dir+"/told")
	return dir
}

// heard expects the text from the hook, and the event in the runlog.
func heard(t *testing.T, dir, told, event string) {
	t.Helper()
	text := func(name string) string {
		text, _ := os.ReadFile(filepath.Join(dir, name)) // may not be there yet
		return string(text)
	}
	helper.Eventually(t, "the hook is told: "+told, func() bool { return strings.Contains(text("told"), told+"\n") })
	wantWords(t, text("program.dax.runlog"), event)
}

func TestTroubleWithTheLockDirectoryIsReportedAndNothingRuns(t *testing.T) {
	for name, c := range troubles {
		t.Run(name, func(t *testing.T) {
			a := c.make(t)
			said := "o x: not run: " + strings.ReplaceAll(c.said, "{dir}", a.Dir)
			a.Newcomer(t).Is(t, c.status, "", "adlock: "+said+"\n")
			told := "adlock: " + strings.ReplaceAll(c.said, "{dir}", a.Dir) + "\n"
			if r := a.Newcomer(t, "--dry-run"); name != "missing" && (r.Status != c.status || r.Out != "" || r.Err != told) {
				t.Errorf("the dry run: %+v; want status %d and %s", r, c.status, told)
			}
			dir := hear(t, a)
			a.Newcomer(t).Refused(t, c.status, said)
			heard(t, dir, "not-run p.dax.o.x "+strconv.Itoa(c.status)+": "+said, " event=not-run ")
			// A script, and a program that speaks to hold.
			script := `. "$lib" && adlock_with o x -- echo ran`
			a.More = append(a.More, "lib="+filepath.Join(helper.Root(), "sh/adlock.sh"), "ADLOCK_BIN="+a.Bin, "ADLOCK_HOST=dax", "ADLOCK_PROGRAM=p")
			a.Shell(t, script).Refused(t, c.status, said)
			hold := `"$adlock" hold --operator o x <&- | grep -c '^error o x: not run: '; exit 9`
			a.Shell(t, hold).Is(t, 9, "1\n…", "adlock: "+said+"\n")
		})
	}
}

func TestARefusedHardLinkIsNamedAsTheCause(t *testing.T) {
	need.Tools(t, "strace")
	a := newAtom(t)
	a.Shell(t, "strace -f --seccomp-bpf -qq -o /dev/null -e trace=linkat -e inject=linkat:error=EPERM $adlock run --name x -- true").
		Refused(t, 73, "hard links are refused here")
}

func TestLocksStillDenyOnAReadOnlyFileSystem(t *testing.T) {
	a := small(t)
	hear(t, a)
	owner := a.Owner(t, "exec sleep 1000")
	readOnly := func(flag uintptr) { must(t, unix.Mount("", a.Dir, "", unix.MS_REMOUNT|flag, "")) }
	readOnly(unix.MS_RDONLY)
	a.Newcomer(t).Denied(t)
	a.Newcomer(t, "--dry-run").Is(t, 75, "busy: …", "")
	a.Shell(t, `"$adlock" status`).Is(t, 0, "…running…", "")
	a.Newcomer(t, "--expire-after=0").Refused(t, 73, "read-only file system")
	if r := a.Shell(t, `"$adlock" stop `+helper.AtomName); r.Status != 73 || !strings.Contains(r.Err, "read-only file system") || owner.Ended() {
		t.Errorf("stop: %+v", r)
	}
	owner.Kill(t)
	owner.Wait(t)
	a.Newcomer(t).Refused(t, 73, "read-only file system")
	readOnly(0)
}

// A line of a crontab that is refused each night is found in the morning.
func TestARefusedCommandLineIsLoggedAndShownAsFailed(t *testing.T) {
	s := newStage(t)
	for _, c := range []struct {
		name  string
		says  string
		words []string
	}{
		{"a", "--if-elapse: unknown option", []string{"run", "--if-elapse", "1h", "--name", "a", "--", "true"}},
		{"test", "--if-elapse", []string{"run", "--name", "test", "--if-elapse", "1h", "true"}}, // also a program
		{"b", "ADLOCK_WAIT", []string{"ADLOCK_WAIT=5", "run", "--name", "b", "true"}},
		{"c", "wants a limit", []string{"run", "--name", "c", "--enforce", "true"}},
		{"d", "wants a COMMAND", []string{"run", "--name", "d"}},
		{"e", "ADLOCK_WAT: unknown setting", []string{"shell", "-c", ": e ADLOCK_WAT=5s; true"}},
		{"f", "is not understood", []string{"shell", "-c", ": f ADLOCK_WAIT='5s'; true"}},
		{"false-", "--name: needs a value", []string{"run", "--name", "--", "--", "false"}},
		{"h", "ADLOCK_LOG_MAX: ", []string{"ADLOCK_LOG_MAX=x", "run", "--name", "h", "true"}},
		{"g", "is no absolute path", []string{"ADLOCK_SHELL=bash", "shell", "-c", ": g ; true"}},
	} {
		s.refused(64, c.says, c.words...)
		wantWords(t, s.adlock("status", "--failed", c.name).Out, c.name, "not run: status 64, its options were refused")
		wantWords(t, s.adlock("log", c.name).Out, c.says)
	}
	unnamed := []string{"--if-elapse", "1h", "true", "x"}
	s.want(0, append([]string{"run"}, unnamed[2:]...)...)
	s.refused(64, "--if-elapse", append([]string{"run"}, unnamed...)...)
	if r := s.adlock("status", "--failed", "true-"); strings.Count(r.Out, "its options were refused") != 1 {
		t.Errorf("a line without a name is another atom: %+v", r)
	}
}

func TestARefusalAtATerminalOrInADryRunIsNotLogged(t *testing.T) {
	s := newStage(t)
	wrong := []string{"run", "--name", "a", "--if-elapse", "1h", "--", "true"}
	matches(s, s.typed(0, wrong...), "unknown option")
	s.refused(64, "unknown option", append([]string{"run", "--dry-run"}, wrong[1:]...)...)
	s.refused(64, "unknown option", "run", "--if-elapse", "1h")
	elsewhere := helper.Dir(t)
	s.refused(64, "unknown option", append([]string{"run", "--if-elapse", "1h", "--store", elsewhere}, wrong[1:]...)...)
	must(t, os.Chmod(s.locks, 0o770))
	s.refused(64, "unknown option", wrong...)
	must(t, os.Chmod(s.locks, 0o700))
	if entries, err := os.ReadDir(s.locks); err != nil || len(entries) != 0 {
		t.Errorf("%v, %v", entries, err)
	}
	if _, err := os.Stat(elsewhere + "/program." + host + ".runlog"); err != nil {
		t.Error(err)
	}
}
