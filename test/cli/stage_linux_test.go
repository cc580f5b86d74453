package cli

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"adlock/lib/runlog"
	"adlock/test/support/helper"
	setup "adlock/test/support/must"
	"adlock/test/support/need"
)

const host = "dax"

// stage is one lock directory, and a working directory.
type stage struct {
	*testing.T
	locks string
	dir   string // the working directory of commands
}

func newStage(t *testing.T) *stage {
	t.Helper()
	t.Parallel()
	return newSubstage(t)
}

// newSubstage is newStage for a subtest, or a step, of a test that is parallel already.
func newSubstage(t *testing.T) *stage {
	t.Helper()
	return &stage{t, helper.Dir(t), get(filepath.EvalSymlinks(t.TempDir()))(t)}
}

// newAtom makes an atom, and lets the test run in parallel.
func newAtom(t *testing.T) *helper.Atom {
	t.Helper()
	t.Parallel()
	return helper.NewAtom(t)
}

var must = setup.Do

// get is for calls with a result: x := get(f())(t).
func get[V any](value V, err error) func(testing.TB) V {
	return func(t testing.TB) V { t.Helper(); must(t, err); return value }
}

// command is a command line of the helper program; words that begin with ADLOCK_ and have a `=` go to its environment.
func (s *stage) command(words ...string) helper.Command {
	s.Helper()
	c := helper.Command{Dir: s.dir, Args: []string{helper.Binary(s)},
		Env: []string{"ADLOCK_DIR=" + s.locks, "ADLOCK_HOST=" + host, "ADLOCK_PAUSE=1s"}}
	for _, word := range words {
		if strings.HasPrefix(word, "ADLOCK_") && strings.Contains(word, "=") {
			c.Env = append(c.Env, word)
		} else {
			c.Args = append(c.Args, word)
		}
	}
	return c
}

// unprivileged returns the command for an ordinary user. For root it adds a user namespace, in
// which root has no privileges, and still reaches its files.
func (s *stage) unprivileged(c helper.Command) helper.Command {
	s.Helper()
	if os.Geteuid() == 0 {
		need.Namespaces(s, "--user")
		c.Args = append([]string{"unshare", "--user"}, c.Args...)
	}
	return c
}

// adlock runs the helper program to its end.
func (s *stage) adlock(words ...string) helper.Result {
	s.Helper()
	return s.command(words...).Run(s)
}

// want runs the helper program and expects a status and no output on standard error.
func (s *stage) want(status int, words ...string) helper.Result {
	s.Helper()
	r := s.adlock(words...)
	if r.Status != status || r.Err != "" {
		s.Fatalf("adlock %q: status %d, want %d\n%s%s", words, r.Status, status, r.Out, r.Err)
	}
	return r
}

// refused runs the helper program and expects a status and one line with the words.
func (s *stage) refused(status int, says string, words ...string) {
	s.Helper()
	r := s.adlock(words...)
	if r.Status != status || !oneLine(r.Err) || !strings.Contains(r.Err, says) {
		s.Errorf("adlock %q: status %d, want %d and one line with %q\n%s%s", words, r.Status, status, says, r.Out, r.Err)
	}
}

func oneLine(text string) bool {
	return strings.HasPrefix(text, "adlock: ") && strings.HasSuffix(text, "\n") && strings.Count(text, "\n") == 1
}

// patient gives a supervisor the time to report that its job was ended. The job dies of the first signal,
// so no test takes that long.
const patient = "ADLOCK_PAUSE=30s"

// hold starts a job that holds the atom until the test ends or ends it. It returns when the job
// runs and no process is at its lock.
func (s *stage) hold(name string, options ...string) *helper.Process {
	s.Helper()
	p := s.command(append(jobNamed(name, options...), "--", "sleep", "600")...).Start(s)
	helper.Eventually(s, name+" is held", func() bool { return helper.Settled(s.lockOf(name)) || p.Ended() })
	p.Lives(s)
	return p
}

// take returns the words that take an atom's lock as the library does, for this process.
func (s *stage) take(name string, options ...string) []string {
	words := append([]string{"take", "--owner", itoa(os.Getpid())}, options...)
	return append(words, "--", s.lockOf(name), "job", host, "run", name)
}

func job(words ...string) []string { return jobNamed("a", words...) }

func jobNamed(name string, words ...string) []string {
	return append([]string{"run", "--program", "job", "--name", name}, words...)
}

func (s *stage) lockOf(name string) string { return s.locks + "/lock.job." + host + ".run." + name }
func (s *stage) lastOf(name string) string { return s.locks + "/last.job." + host + ".run." + name }
func (s *stage) held(name string) bool     { return exists(s.lockOf(name)) }

var exists = helper.Exists

// in returns the path of a file in the working directory, and writes the text to it, if any.
func (s *stage) in(name string, text ...string) string {
	s.Helper()
	path := filepath.Join(s.dir, name)
	if len(text) > 0 {
		must(s, need.WriteProgram(path, []byte(strings.Join(text, "")), 0o755))
	}
	return path
}

func (s *stage) read(path string) string {
	s.Helper()
	content := get(os.ReadFile(path))(s)
	return string(content)
}

// aged sets a file's mtime to that long ago.
func (s *stage) aged(path string, by time.Duration) {
	s.Helper()
	then := time.Now().Add(-by)
	must(s, os.Chtimes(path, then, then))
}

func (s *stage) modified(path string) time.Time {
	s.Helper()
	info := get(os.Stat(path))(s)
	return info.ModTime()
}

// kinds lists the kinds of the operand's events, in order.
func (s *stage) kinds(operand string) string {
	s.Helper()
	var kinds []string
	for e, err := range runlog.Read(s.locks, host, math.MaxInt64) {
		if err != nil {
			s.Fatal(err)
		}
		if e.Operand == operand {
			kinds = append(kinds, string(e.Kind))
		}
	}
	return strings.Join(kinds, " ")
}

// childOf waits until a child of the process runs the command, and returns its pid.
func childOf(t *testing.T, pid int, command string) int {
	t.Helper()
	var child int
	helper.Eventually(t, command+" runs", func() bool {
		for _, c := range helper.Children(pid) {
			if helper.Name(c) == command {
				child = c
			}
		}
		return child != 0
	})
	return child
}

var end, watches, hasOpen = helper.End, helper.Watches, helper.HasOpen
