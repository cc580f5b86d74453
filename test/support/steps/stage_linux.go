package steps

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/runlog"
	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// Stage is one performance of a scenario: its directories, the actor, the journal of processes
// inside the atom, and the gates that hold them there.
type Stage struct {
	Dir, LogDir string

	t        testing.TB
	scenario Scenario
	scratch  string
	session  *helper.Process
	actor    int // its pid
	gates    map[string]*os.File
	began    time.Time
	floor    time.Time // the last lock's mtime at the previous call of Last
}

// gates are FIFOs that this process holds open, so that no other process that opens one waits for
// its other end.
var gates = []string{"START", "END", "JOBGATE", "READY", "NEVER", "HOLD"}

// NewStage prepares everything up to the step itself, before which the actor waits. The end of the
// test removes it all.
func NewStage(t testing.TB, sc Scenario, injection Injection) *Stage {
	t.Helper()
	need.Tools(t, "strace", "bash", "env", "sleep")
	s := &Stage{t: t, scenario: sc, Dir: helper.Dir(t), LogDir: helper.Dir(t), scratch: t.TempDir(), gates: map[string]*os.File{}, began: time.Now()}
	for _, gate := range gates {
		s.openGate(gate)
	}
	s.makeLast()
	env := append(s.env(), "ACTOR="+sc.actor(), "TRACED="+s.traced(injection), "JOB="+job, "TTY="+s.terminal(),
		"TROUBLE="+s.path("trouble"), "OWNS="+map[bool]string{true: "yes"}[sc.Owns])
	if sc.LogFull {
		s.fillLog()
		env = append(env, "ADLOCK_LOG_MAX=2000") // for the step alone
	}
	s.session = helper.Command{Args: []string{"bash", "-c", stage}, Env: env}.Start(t)
	helper.Eventually(t, "the actor is ready", func() bool { return s.says("actor") != nil })
	s.actor = s.number("actor")
	s.Last()
	return s
}

func (s *Stage) env() []string {
	env := []string{"ADLOCK=" + helper.Binary(s.t), "ADLOCK_DIR=" + s.Dir, "ADLOCK_LOGDIR=" + s.LogDir, "JOURNAL=" + s.path("journal")}
	for _, gate := range gates {
		env = append(env, gate+"="+s.path(gate))
	}
	return env
}

func (s *Stage) path(file string) string { return filepath.Join(s.scratch, file) }

func (s *Stage) openGate(gate string) {
	s.t.Helper()
	if err := unix.Mkfifo(s.path(gate), 0o600); err != nil {
		s.t.Fatal(err)
	}
	file, err := os.OpenFile(s.path(gate), os.O_RDWR, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { file.Close() })
	s.gates[gate] = file
}

// Open lets one process through a gate.
func (s *Stage) Open(gate string) {
	s.t.Helper()
	if _, err := s.gates[gate].WriteString("\n"); err != nil {
		s.t.Fatal(err)
	}
}

// makeLast gives the atom a completion in the past, except in two scenarios that begin without
// one.
func (s *Stage) makeLast() {
	s.t.Helper()
	if s.scenario.Name == "acquire" || s.scenario.Name == "acquire-named" {
		return
	}
	path := filepath.Join(s.Dir, "last."+Name)
	then := time.Now().Add(-time.Hour)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Chtimes(path, then, then); err != nil {
		s.t.Fatal(err)
	}
}

// OldLines is how many lines a full runlog has.
const OldLines = 12

// fillLog makes a runlog of OldLines lines that the step's next line rotates.
func (s *Stage) fillLog() {
	s.t.Helper()
	log := runlog.Log{Dir: s.LogDir, Host: atom.Canonify("h")}
	for range OldLines {
		e := runlog.Event{Kind: runlog.Deny, Program: "old", Operator: "o", Operand: "x", Reason: strings.Repeat("-", 90)}
		if err := log.Append(e); err != nil {
			s.t.Fatal(err)
		}
	}
}

// terminal opens a pseudoterminal and returns its path; "" if none is wanted.
func (s *Stage) terminal() string {
	s.t.Helper()
	if !s.scenario.Terminal {
		return ""
	}
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		s.t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		s.t.Fatal(err)
	}
	return "/dev/pts/" + strconv.Itoa(number)
}

// says returns the rest of each line that the actor printed and that begins with word.
func (s *Stage) says(word string) []string {
	var rest []string
	for line := range strings.Lines(s.session.Output()) {
		if found, ok := strings.CutPrefix(line, word); ok && strings.HasSuffix(line, "\n") {
			rest = append(rest, strings.TrimSpace(found))
		}
	}
	return rest
}

// number is the first number that the actor has printed behind word.
func (s *Stage) number(word string) int {
	s.t.Helper()
	n, err := strconv.Atoi(s.says(word)[0])
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// settled is how long a job must have run until it is let out, so that a fault in the taking has
// shown by then, and a later one can only meet the release.
const settled = 60 * time.Millisecond

// Play runs the step and returns its status. If the step runs a job, the job is let out once it has
// run for as long as settled.
func (s *Stage) Play() int {
	s.t.Helper()
	s.Open("START")
	done := func() bool { return s.says("status") != nil }
	helper.Eventually(s.t, "the step is done or its job runs", func() bool { return done() || s.scenario.Runs && s.Inside() > 0 })
	if !done() {
		for deadline := time.Now().Add(settled); !done() && time.Now().Before(deadline); {
			time.Sleep(5 * time.Millisecond)
		}
		if !done() {
			s.Open("JOBGATE")
		}
	}
	helper.Eventually(s.t, "the step is done", done)
	return s.number("status")
}

// EndActor lets the actor end, and a job that it left behind.
func (s *Stage) EndActor() {
	s.t.Helper()
	if s.scenario.Runs {
		s.Open("JOBGATE")
		helper.Eventually(s.t, "the job is gone", func() bool { return !s.jobLives() && !s.gated() })
	}
	s.Open("END")
	helper.Eventually(s.t, "the actor is gone", func() bool { return !helper.Alive(s.actor) })
}

// jobLives reports whether a process of the journal, other than the actor, lives.
func (s *Stage) jobLives() bool {
	for _, line := range s.journal() {
		if pid, err := strconv.Atoi(line[0]); err == nil && pid != s.actor && helper.Alive(pid) {
			return true
		}
	}
	return false
}

// gated reports whether there is a gate, which holds the atom like the job that it is to become. It
// ends a little after a supervisor that died before the job began.
func (s *Stage) gated() bool {
	return slices.ContainsFunc(helper.Session(s.session.PID), func(pid int) bool {
		line, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline") // "" if it is gone
		return strings.HasPrefix(string(line), "adlock: gate\x00")
	})
}

// journal returns pairs: pid and event.
func (s *Stage) journal() [][2]string {
	text, err := os.ReadFile(s.path("journal"))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	var lines [][2]string
	for line := range strings.Lines(string(text)) {
		pid, event, _ := strings.Cut(strings.TrimSpace(line), " ")
		lines = append(lines, [2]string{pid, event})
	}
	return lines
}

// Inside counts the processes inside the atom.
func (s *Stage) Inside() int {
	n := 0
	for _, line := range s.journal() {
		switch line[1] {
		case "inside":
			n++
		case "outside":
			n--
		}
	}
	return n
}
