package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/test/support/helper"
)

// world is one situation of one atom, p.dax.o.x, with its newcomer.
type world struct {
	*testing.T
	place
	bin     string
	began   time.Time
	options []string // the newcomer's, as for `adlock run`

	inside []string // the command that starts the newcomer; none: the test does
	first  string   // a script's first command, if the test starts the script
}

func newWorld(t *testing.T, p place, options []string) *world {
	t.Helper()
	w := &world{T: t, place: p, bin: withLocksmith(t), began: time.Now().Truncate(time.Second)}
	for _, option := range options {
		if ahead, is := strings.CutPrefix(option, "--now="); is {
			option = "--now=" + strconv.FormatInt(w.began.Add(seconds(ahead)).Unix(), 10)
		}
		w.options = append(w.options, option)
	}
	return w
}

// env are the variables by which every process of the world finds the locks.
func (w *world) env() []string {
	return append(w.vars(), "ADLOCK_HOST=dax", "ADLOCK_PAUSE=1s", "ADLOCK_LEASE=1h", "bin="+w.bin,
		"library="+filepath.Join(helper.Root(), "sh/adlock.sh"))
}

// runner is the command line of `adlock run` up to its options.
func (w *world) runner(operand string, options ...string) []string {
	return append([]string{w.bin, "run", "--program=p", "--operator=o", "--operand=" + operand}, options...)
}

// ask runs a newcomer with these settings, wherever it starts.
func (w *world) ask(settings []string, words ...string) helper.Result {
	w.Helper()
	args := slices.Concat(w.inside, []string{"env"}, w.env(), settings, words)
	return helper.Command{Args: args, Env: w.env()}.Run(w)
}

// run is `adlock run`, with a job that prints "ran".
func (w *world) run(options ...string) helper.Result {
	w.Helper()
	return w.ask(nil, append(w.runner("x", append(w.options, options...)...), "--", "echo", "ran")...)
}

// settings are the newcomer's options as variables of the library.
func (w *world) settings() (settings []string) {
	for _, option := range w.options {
		name, value, given := strings.Cut(strings.TrimPrefix(option, "--"), "=")
		if !given {
			value = "1"
		}
		settings = append(settings, "ADLOCK_"+strings.ReplaceAll(strings.ToUpper(name), "-", "_")+"="+value)
	}
	return append(settings, "ADLOCK_PROGRAM=p", "ADLOCK_BIN="+w.bin, "ADLOCK_VERBOSE=1")
}

// script is adlock_get; it prints its status and its verdict.
func (w *world) script() helper.Result {
	w.Helper()
	if w.first != "" {
		w.inside = nil
	}
	return w.ask(w.settings(), "dash", "-c", `. "$library"; `+w.first+`
		adlock_get o x "${ADLOCK_IF_ELAPSED:-0}"
		echo "$? ${ADLOCK_VERDICT-}"
		adlock_release`)
}

// completed sets the atom's completion to that long ago, and the start of its run to started before now; 0: unchanged.
func (w *world) completed(ago, started time.Duration) {
	w.Helper()
	if r := w.run(); r.Status != 0 {
		w.Fatalf("the run that was to complete: %+v", r)
	}
	w.setLast(w, time.Now().Add(-ago), started)
}

// hold starts a job that holds the atom and has run for age.
func (w *world) hold(age time.Duration, options ...string) *helper.Process {
	w.Helper()
	p := w.start(w.runner("x", append([]string{"--expire-after=2h"}, options...)...))
	if age > 0 {
		w.setAge(w, age)
	}
	return p
}

// start runs the command, and waits until its job runs and is in its lock.
func (w *world) start(command []string) *helper.Process {
	w.Helper()
	ready := filepath.Join(w.TempDir(), "ready")
	p := helper.Command{
		Args: slices.Concat(command, []string{"--", "sh", "-c", `: >"$0"; exec sleep 1000`, ready}), Env: w.env(),
	}.Start(w)
	helper.Eventually(w, "the job runs", func() bool {
		if p.Ended() {
			w.Fatalf("it ended: %s", p.Output())
		}
		return exists(ready) && w.settled()
	})
	return p
}

// kill ends a supervisor with its whole job, so that it cannot react.
func (w *world) kill(p *helper.Process) {
	w.Helper()
	helper.KillSession(p.PID)
	p.Wait(w)
	helper.Eventually(w, "nothing of the job lives", func() bool { return len(helper.Session(p.PID)) == 0 })
}

func (w *world) orphan(p *helper.Process) {
	w.Helper()
	p.Signal(w, syscall.SIGKILL)
	helper.Eventually(w, "the supervisor is dead", func() bool { return !helper.Alive(p.PID) })
}

// elapsed returns by how much a figure may differ from that at the beginning of the world: the
// time since then, and a second for the rounding.
func (w *world) elapsed() time.Duration { return time.Since(w.began) + time.Second }

// place is where the locks are. It changes them as time would.
type place interface {
	vars() []string

	setLast(t testing.TB, completed time.Time, started time.Duration)
	setAge(t testing.TB, age time.Duration) // of the active lock, or of the readers' locks

	settled() bool   // the owner has completed its lock
	record() string  // the runlog
	files() []string // of the active lock and of readers
}

type directory struct{ dir string }

func newDirectory(testing.TB) func(testing.TB) place {
	return func(t testing.TB) place { return directory{helper.Dir(t)} }
}

func (d directory) vars() []string { return []string{"ADLOCK_DIR=" + d.dir} }

func (d directory) lock() string { return filepath.Join(d.dir, "lock."+helper.AtomName) }

func (d directory) files() []string {
	locks, _ := filepath.Glob(filepath.Join(d.dir, "lock.p.dax.o.*"))
	readers, _ := filepath.Glob(filepath.Join(d.dir, "read.p.dax.o.*.*"))
	return append(locks, readers...)
}

func (d directory) settled() bool {
	files := d.files()
	for _, file := range files {
		if !helper.Settled(file) {
			return false
		}
	}
	return len(files) > 0
}

func (d directory) setLast(t testing.TB, completed time.Time, started time.Duration) {
	t.Helper()
	last := filepath.Join(d.dir, "last."+helper.AtomName)
	if started > 0 {
		helper.Rewrite(t, last, "started", ago(started))
	}
	must(t, os.Chtimes(last, completed, completed))
}

func (d directory) setAge(t testing.TB, age time.Duration) {
	t.Helper()
	for _, file := range d.files() {
		helper.Rewrite(t, file, "monotonic", monotonic(age))
		at := time.Now().Add(-age)
		must(t, os.Chtimes(file, at, at))
	}
}

func (d directory) record() string {
	text, _ := os.ReadFile(filepath.Join(d.dir, "program.dax.runlog")) // "": there is none yet
	return string(text)
}

// ago is that time in the form of a record.
func ago(d time.Duration) string { return time.Now().Add(-d).UTC().Format(time.RFC3339Nano) }
