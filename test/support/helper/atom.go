package helper

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Atom is one atom in a lock directory of its own.
type Atom struct {
	Dir string
	Bin string // the helper program
	UID int    // the user whose processes ask for it; 0: the test's user

	More []string // further variables, "NAME=value"
}

// The atom's parts and NAME.
const (
	atomParts = "--program=p --host=dax --operator=o --operand=x"
	AtomName  = "p.dax.o.x"
)

// NewAtom returns an atom that was never taken.
func NewAtom(t testing.TB) *Atom {
	t.Helper()
	return &Atom{Dir: Dir(t), Bin: Binary(t)}
}

// Lock is the path of the active lock.
func (a *Atom) Lock() string { return filepath.Join(a.Dir, "lock."+AtomName) }

// OwnerPID reads the owner's pid as a shell script does.
func (a *Atom) OwnerPID(t testing.TB) int {
	t.Helper()
	text, err := os.ReadFile(a.Lock())
	if err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// Last is the path of the last lock.
func (a *Atom) Last() string { return filepath.Join(a.Dir, "last."+AtomName) }

// Runlog returns the runlog so far; "" if there is none.
func (a *Atom) Runlog() string {
	text, _ := os.ReadFile(filepath.Join(a.Dir, "program.dax.runlog"))
	return string(text)
}

// Env has the variables by which a script finds the atom: $take takes it for the shell that
// runs $take, as the library does; $run, with a command behind it, is a newcomer.
func (a *Atom) Env() []string {
	return append([]string{
		"ADLOCK_DIR=" + a.Dir, "adlock=" + a.Bin,
		"take=eval " + a.Bin + " take --owner $$ -- " + a.Lock() + " p dax o x",
		"run=" + a.Bin + " run --pause=1s " + atomParts,
	}, a.More...)
}

// Shell runs a script with Env to its end.
func (a *Atom) Shell(t testing.TB, script string, prefix ...string) Result {
	t.Helper()
	return a.command(append(prefix, "sh", "-c", script)).Run(t)
}

// Owner starts a shell that takes the atom and then runs the script. The shell is the owner,
// also with `exec …`. The helper that took the atom has ended: it is in the owner's group, and
// would hold the atom after the owner's death.
func (a *Atom) Owner(t testing.TB, script string, prefix ...string) *Process {
	t.Helper()
	p := a.command(append(prefix, "sh", "-c", "$take || exit\n"+script)).Start(t)
	a.AwaitLock(t)
	Eventually(t, "the helper has ended", func() bool {
		return !slices.ContainsFunc(Session(p.PID), func(pid int) bool { return Name(pid) == filepath.Base(a.Bin) })
	})
	return p
}

// Supervised starts `adlock run` with a shell script as its job, and returns when the job runs.
func (a *Atom) Supervised(t testing.TB, script string, prefix ...string) *Process {
	t.Helper()
	p := a.command(append(append(prefix, a.newcomer()...), "sh", "-c", script)).Start(t)
	Eventually(t, "the job runs", func() bool { return Settled(a.Lock()) })
	return p
}

// Newcomer runs `adlock run` with these options and a job that prints "ran".
func (a *Atom) Newcomer(t testing.TB, options ...string) Result {
	t.Helper()
	return a.command(append(a.newcomer(options...), "echo", "ran")).Run(t)
}

func (a *Atom) newcomer(options ...string) []string {
	args := append([]string{a.Bin, "run", "--pause=1s"}, strings.Fields(atomParts)...)
	return append(append(args, options...), "--")
}

func (a *Atom) command(args []string) Command {
	return Command{Args: args, Env: a.Env(), UID: a.UID}
}

// AwaitLock waits until the atom is held and its new owner has released the guard: until then
// any newcomer is denied as busy.
func (a *Atom) AwaitLock(t testing.TB) {
	t.Helper()
	Eventually(t, "the atom is held", func() bool { return Unguarded(a.Lock()) })
}

// Unguarded reports whether the lock exists and no process holds its guard.
func Unguarded(lock string) bool {
	f, err := os.Open(lock)
	if err != nil {
		return false
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil
}

// Settled reports whether the lock's supervisor has started its job, recorded it, and released
// the guard. Before, a newcomer finds the guard held, and the death of the supervisor may leave
// a command that no lock names.
func Settled(lock string) bool {
	text, _ := os.ReadFile(lock) // none yet: not settled
	return bytes.Contains(text, []byte("\ncommand=")) && Unguarded(lock)
}

// Mark returns an environment entry by which With finds the processes of a job. Processes that
// have it at the end of the test are killed.
func (a *Atom) Mark(t testing.TB) string {
	t.Helper()
	mark := "JOB=" + a.Dir
	t.Cleanup(func() {
		for _, pid := range With(mark) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by itself
		}
	})
	return mark
}

// Rewrite changes one value of the active lock in place, as in a lock of another boot, machine
// or time.
func (a *Atom) Rewrite(t testing.TB, key, value string) {
	t.Helper()
	Rewrite(t, a.Lock(), key, value)
}

// Rewrite changes one value of a file of key=value lines in place.
func Rewrite(t testing.TB, path, key, value string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, Replaced(t, text, key, value), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Replaced returns the key=value lines with one value changed.
func Replaced(t testing.TB, text []byte, key, value string) []byte {
	t.Helper()
	lines := bytes.SplitAfter(text, []byte("\n"))
	for i, line := range lines {
		if bytes.HasPrefix(line, []byte(key+"=")) {
			lines[i] = []byte(key + "=" + value + "\n")
			return bytes.Join(lines, nil)
		}
	}
	t.Fatalf("no %q in:\n%s", key, text)
	return nil
}

// endedAnother matches the message of a newcomer that ended the owner.
var endedAnother = regexp.MustCompile(`^adlock: .*: ended process \d+( on \S+)? by force: it had run for .*\n$`)

// Ran fails the test unless the newcomer took the atom and printed nothing, except the one line
// about an owner that it ended.
func (r Result) Ran(t testing.TB) {
	t.Helper()
	if r.Status != 0 || r.Out != "ran\n" || r.Err != "" && !endedAnother.MatchString(r.Err) {
		t.Errorf("status %d, output %q, errors %q; want the job to run in silence", r.Status, r.Out, r.Err)
	}
}

// Denied fails the test unless the newcomer was denied, without a message.
func (r Result) Denied(t testing.TB) {
	t.Helper()
	if r.Status != 75 || r.Out != "" || r.Err != "" {
		t.Errorf("status %d, output %q, errors %q; want a silent denial", r.Status, r.Out, r.Err)
	}
}

// Is fails the test unless the program ended with the status and printed these texts, in which … stands
// for any text.
func (r Result) Is(t testing.TB, status int, out, err string) {
	t.Helper()
	if r.Status != status || !like(r.Out, out) || !like(r.Err, err) {
		t.Errorf("%+v, want %+v", r, Result{status, out, err})
	}
}

func like(text, pattern string) bool {
	pattern = strings.ReplaceAll(regexp.QuoteMeta(pattern), "…", "(?s:.*)")
	return regexp.MustCompile("^" + pattern + "$").MatchString(text)
}

// Refused fails the test unless the newcomer ended with the status, printed one line with the
// word to standard error, and ran no job.
func (r Result) Refused(t testing.TB, status int, word string) {
	t.Helper()
	if r.Status != status || r.Out != "" || strings.Count(r.Err, "\n") != 1 || !strings.Contains(r.Err, word) {
		t.Errorf("status %d, output %q, errors %q; want status %d and one line with %q", r.Status, r.Out, r.Err, status, word)
	}
}
