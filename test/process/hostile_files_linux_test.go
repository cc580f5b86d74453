package process

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// bait is a file that must not change, whatever leads to it.
type bait struct {
	path string
	info os.FileInfo
}

const baitText = "precious\n"

func newBait(t *testing.T) bait {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bait")
	must.Do(t, os.WriteFile(path, []byte(baitText), 0o640))
	old := time.Now().Add(-time.Hour)
	must.Do(t, os.Chtimes(path, old, old))
	info := must.Get(os.Stat(path))(t)
	return bait{path, info}
}

func (b bait) mustBeUntouched(t *testing.T) {
	t.Helper()
	text := must.Get(os.ReadFile(b.path))(t)
	info := must.Get(os.Stat(b.path))(t)
	if string(text) != baitText || info.Mode() != b.info.Mode() || !info.ModTime().Equal(b.info.ModTime()) {
		t.Errorf("the bait holds %q, mode %v, mtime %v", text, info.Mode(), info.ModTime())
	}
	helper.Absent(t, b.path+".new")
}

// plants make what an enemy may put in the place of one of adlock's files.
var plants = map[string]func(path string, b bait) error{
	"symlink":          func(path string, b bait) error { return os.Symlink(b.path, path) },
	"dangling symlink": func(path string, b bait) error { return os.Symlink(b.path+".new", path) },
	"hard links": func(path string, b bait) error {
		return errors.Join(os.Link(b.path, path), os.Link(b.path, path+".too"))
	},
	"fifo":      func(path string, _ bait) error { return syscall.Mkfifo(path, 0o600) },
	"socket":    func(path string, _ bait) error { return syscall.Mknod(path, syscall.S_IFSOCK|0o600, 0) },
	"directory": func(path string, _ bait) error { return os.Mkdir(path, 0o700) },
}

// verbs are scripts for all verbs that open a lock.
var verbs = map[string]string{
	"run":            "$run echo ran",
	"mkatomic":       "$take && echo ran",
	"kill-carefully": "$adlock kill-carefully --lock $ADLOCK_DIR/lock.p.dax.o.x && echo ran",
	"release":        "$adlock release $ADLOCK_DIR/lock.p.dax.o.x && echo ran",
	"clear":          "$adlock clear p.dax.o.x && echo ran",
	"stop":           "$adlock stop p.dax.o.x && echo ran",
}

func TestOnlyARegularFileIsTakenForALock(t *testing.T) {
	t.Parallel()
	for planted, plant := range plants {
		for verb, script := range verbs {
			t.Run(planted+" before "+verb, func(t *testing.T) {
				a, b := helper.NewAtom(t), newBait(t)
				must.Do(t, plant(a.Lock(), b))
				got := a.Shell(t, script)
				got.Refused(t, 77, a.Lock())
				got.Refused(t, 77, map[string]string{"directory": "not a regular file: adlock has not made it; move it away", "hard links": "too many links"}[planted])
				b.mustBeUntouched(t)
			})
		}
	}
}

func TestAPlantedLastLockIsNotTouchedAndTheAtomIsReleased(t *testing.T) {
	t.Parallel()
	for planted, plant := range plants {
		t.Run(planted, func(t *testing.T) {
			a, b := helper.NewAtom(t), newBait(t)
			gate := filepath.Join(t.TempDir(), "gate")
			job := a.Supervised(t, "until [ -e "+gate+" ]; do sleep 0.01; done")
			must.Do(t, os.Remove(a.Last()))
			must.Do(t, plant(a.Last(), b))
			must.Do(t, os.WriteFile(gate, nil, 0o600))
			job.Is(t, 0, "…"+a.Last()+"…")
			b.mustBeUntouched(t)
			helper.Absent(t, a.Lock())
		})
	}
}

func TestAPlantedRunlogIsNotTouchedAndTheJobRuns(t *testing.T) {
	t.Parallel()
	for planted, plant := range plants {
		t.Run(planted, func(t *testing.T) {
			a, b := helper.NewAtom(t), newBait(t)
			must.Do(t, plant(filepath.Join(a.Dir, "program.dax.runlog"), b))
			a.Newcomer(t).Is(t, 0, "ran\n", "…program.dax.runlog…")
			b.mustBeUntouched(t)
		})
	}
}

func TestNoNameLeadsOutOfTheLockDirectory(t *testing.T) {
	t.Parallel()
	a := helper.NewAtom(t)
	enemy := "../../../../tmp/x\n/etc/passwd\x1b[2J"
	got := helper.Command{Args: []string{a.Bin, "run", "--program", enemy, "--host", enemy, "--operator", enemy, "--operand", enemy, "--", "echo", "ran"}, Env: a.Env()}.Run(t)
	got.Ran(t)
	files := must.Get(os.ReadDir(a.Dir))(t)
	if len(files) != 2 || !strings.HasPrefix(files[0].Name(), "last.") || !strings.HasPrefix(files[1].Name(), "program.") {
		t.Errorf("the directory holds %v", files)
	}
	log := must.Get(os.ReadFile(filepath.Join(a.Dir, files[1].Name())))(t)
	if strings.Count(string(log), "\n") != 2 || strings.ContainsAny(string(log), "\x1b") {
		t.Errorf("the record of one run:\n%q", log)
	}
	for _, verb := range []string{"clear ../x", "clear ../../etc/passwd", "clear .", "clear ''", "release /etc/passwd", "release lock.x", "kill-carefully --lock /etc/passwd"} {
		a.Shell(t, "$adlock "+verb).Refused(t, 64, "adlock: ")
	}
}

// The name of an operand or a process must neither move the cursor of a reader's terminal nor forge a second line.
func TestADenialOfAHostileNameIsOneLineOfPlainText(t *testing.T) {
	t.Parallel()
	a := helper.NewAtom(t)
	enemy := "x\nadlock: forged\r\x1b[2J\u009b2J\x9b2J"
	run := []string{a.Bin, "run", "--verbose", "--program=p", "--host=dax", "--operator=o", "--operand=" + enemy, "--if-elapsed=1h", "--", "true"}
	helper.Command{Args: run, Env: a.Env()}.Run(t)
	got := helper.Command{Args: run, Env: a.Env()}.Run(t)
	if got.Status != 75 || strings.Count(got.Err, "\n") != 1 || strings.ContainsAny(got.Err, "\r\x1b\u009b") || strings.Contains(got.Err, "\x9b") {
		t.Errorf("%+q", got.Err)
	}
}

func TestAProcessNameCannotForgeAMessage(t *testing.T) {
	t.Parallel()
	a := helper.NewAtom(t)
	evil := filepath.Join(t.TempDir(), "x\n1\tinit")
	shell := must.Get(os.ReadFile("/bin/sleep"))(t)
	must.Do(t, need.WriteProgram(evil, shell, 0o700))
	p := helper.Command{Args: []string{evil, "1000"}}.Start(t)
	helper.Eventually(t, "it has its name", func() bool {
		got := helper.Command{Args: []string{a.Bin, "kill-carefully", "--dry-run", itoa(p.PID)}, Env: a.Env()}.Run(t)
		check.Equal(t, "lines", strings.Count(got.Out, "\n"), 1)
		return strings.Contains(got.Out, "init")
	})
}
