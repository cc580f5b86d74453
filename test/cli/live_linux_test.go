package cli

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"adlock/lib/sysfile"
	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/terminal"
)

// onTerminal starts the helper program at a terminal of its own.
func (s *stage) onTerminal(columns uint16, words ...string) *terminal.Process {
	s.Helper()
	return terminal.Start(s, columns, s.command(words...))
}

// typed runs the helper program at a terminal of its own to its end, and returns all output to it.
func (s *stage) typed(columns uint16, words ...string) string {
	s.Helper()
	return s.onTerminal(columns, words...).AllShown(s)
}

// left returns what stays on the screen: of each line, the part after it was last cleared.
func left(shown string) string {
	var rows []string
	for row := range strings.SplitSeq(strings.ReplaceAll(shown, "\r\n", "\n"), "\n") {
		rows = append(rows, row[strings.LastIndex(row, "\x1b[K")+1:])
	}
	return strings.TrimPrefix(strings.Join(rows, "\n"), "[K")
}

func TestAWaiterAtATerminalShowsOwnerAndTime(t *testing.T) {
	s := newStage(t)
	owner := s.hold("a", "--expire-after", "2h")
	p := s.onTerminal(200, job("--wait", "5m", "echo", "ran")...)
	p.Shows(s, fmt.Sprintf(`run a: waiting for process %d: [0-9]s, at most (5m|4m5[0-9]s) more; it expires in (2h|1h59m)`, owner.PID))
	figures := regexp.MustCompile(`: [0-9]+s, at most [0-9ms]+ more`)
	helper.Eventually(t, "it is written anew", func() bool {
		all := figures.FindAllString(p.Shown(), -1)
		return all[0] != all[len(all)-1]
	})
	owner.Signal(t, syscall.SIGTERM)
	check.Equal(t, "left on the terminal", left(p.AllShown(t)), "ran\n")
}

func TestAWaiterInTheBackgroundLeavesTheTerminalAlone(t *testing.T) {
	s := newStage(t)
	owner := s.hold("a")
	c := s.command(job("--wait=5m", "touch", s.in("ran"))...)
	c.Args = append([]string{"bash", "-c", `stty tostop; set -m; "$@"; bg; echo behind; wait`, "bash"}, c.Args...)
	p := terminal.Start(t, 200, c)
	p.Shows(t, "waiting for process")
	get(p.Keyboard.WriteString("\x1a"))(t)
	p.Shows(t, "behind\r\n")
	owner.Signal(t, syscall.SIGTERM)
	helper.Eventually(t, "it has run", func() bool { return exists(s.in("ran")) })
}

func TestAnEndingAtATerminalShowsTheSignalSent(t *testing.T) {
	s := newStage(t)
	owner := s.hold("a")
	shown := s.typed(200, job("--expire-after", "0", "true")...)
	matches(s, shown, fmt.Sprintf(`run a: ending process %d and its job: INT to \d+ \(sleep\)`, owner.PID))
	if got := left(shown); !oneLine(got) || !strings.Contains(got, "ended process") {
		t.Errorf("left on the terminal: %q", got)
	}
}

func TestTheJitterIsShownAtATerminal(t *testing.T) {
	s := newStage(t)
	const wide = "\u754c" // two columns
	p := s.onTerminal(30, jobNamed(strings.Repeat(wide, 8), "--jitter", "50h", "true")...)
	p.Shows(s, "run "+wide+"+: starts")
	helper.Eventually(t, "it listens to signals", func() bool { return listens(p.Process.Pid) })
	for row := range strings.SplitSeq(p.Shown(), "\x1b[K") {
		if row = strings.TrimRight(row, "\r"); utf8.RuneCountInString(row)+strings.Count(row, wide) >= 30 {
			t.Errorf("%q does not fit into 30 columns", row)
		}
	}
	must(t, syscall.Kill(p.Process.Pid, syscall.SIGINT))
	check.Equal(t, "left on the terminal", left(p.AllShown(t)), "")
}

func matches(s *stage, shown, pattern string) {
	s.Helper()
	if !regexp.MustCompile(pattern).MatchString(shown) {
		s.Errorf("shown is %q, want %s", shown, pattern)
	}
}

func TestADenialAtATerminalNamesTheOwnerAndTheNextStep(t *testing.T) {
	s := newStage(t)
	owner := s.hold("a", "--expire-after", "2h")
	matches(s, s.typed(0, job("true")...), fmt.Sprintf(`^adlock: run a: busy: running for [0-9ms]+, ExpireAfter is 2h \(its owner's\); process %d, user %s, since %s [0-9:]{8}; adlock status job\.dax\.run\.a tells more, --wait D waits, --replace ends it\r\n$`,
		owner.PID, sysfile.UserName(os.Geteuid()), s.modified(s.lockOf("a")).Format(time.DateOnly)))
}

func TestADenialAtATerminalNamesOnlyStepsThatHelp(t *testing.T) {
	s := newStage(t)
	s.hold("full", "--slots", "1")
	s.plant("empty", "")
	s.plant("shlock", itoa(s.hold("other").PID)+"\n")
	s.onceNamed("ticked", onceEver).Ran(t)
	within := []string{"sh", "-c", helper.Binary(s) + " run --program job --name a true"} // from inside the job that holds the atom
	for _, c := range []struct {
		says  string
		words []string
	}{
		{`busy: .*adlock status job\.dax\.run\.empty tells more, --wait D waits`, jobNamed("empty", "true")},
		{`busy: .*adlock status job\.dax\.run\.shlock tells more, --wait D waits`, jobNamed("shlock", "true")},
		{`not run: busy: .* within the job of process [0-9]+`, jobNamed("a", within...)},
		{`busy: .*adlock status job\.dax\.run\.other tells more, --replace ends it`,
			jobNamed("other", "--wait", "100ms", "true")},
		{`full: an atom of job is running; --wait D waits`, jobNamed("b", "--slots", "1", "true")},
		{`full: an atom of job is running`, jobNamed("b", "--slots", "1", "--wait", "100ms", "true")},
		{`too soon: ran already in this tick of 520w, .*; --once-per 0 runs it all the same`, jobNamed("ticked", onceEver, "true")},
		{`a person says adlock run.*`, []string{"hold", "x"}},
	} {
		matches(s, s.typed(0, c.words...), c.says+`\r\n$`)
	}
	if shown := s.typed(200, jobNamed("shlock", "--wait", "1s", "true")...); strings.Contains(shown, "expires") {
		t.Errorf("nothing ends the owner, and shown is %q", shown)
	}
}

func TestADenialAndAWaitReportADeadOwnerWithALiveJob(t *testing.T) {
	s := newStage(t)
	owner := s.hold("a", "--expire-after", "2h")
	child := childOf(t, owner.PID, "sleep")
	helper.EndsWith(t, child)
	owner.Kill(t)
	whose := fmt.Sprintf(`process %d, which is dead, but processes of its job are left`, owner.PID)
	matches(s, s.typed(0, job("true")...), `: busy: running for [0-9ms]+, ExpireAfter is 2h \(its owner's\); `+whose+`, user [^ ]+, since `)
	p := s.onTerminal(200, job("--wait", "5m", "true")...)
	p.Shows(s, `run a: waiting for `+whose+`: [0-9]+s, at most (5m|4m[0-9]+s) more`)
	must(t, syscall.Kill(child, syscall.SIGKILL))
	p.AllShown(t)
}

func TestHelpFitsTheTerminal(t *testing.T) {
	s := newStage(t)
	for _, verb := range []string{"run", "status", "wrap"} {
		whole := strings.Join(strings.Fields(s.want(0, verb, "--help").Out), " ")
		for columns, fits := range map[uint16]int{0: 80, 80: 80, 100: 100} { // 0: unknown
			shown := s.typed(columns, verb, "--help")
			check.Equal(t, "without its spaces", strings.Join(strings.Fields(shown), " "), whole)
			for line := range strings.Lines(shown) {
				if len(line) > fits+len("\r\n") {
					t.Errorf("%s in %d columns: longer than %d: %q", verb, columns, fits, line)
				}
			}
		}
	}
}

func TestStatusColoursStatesOnATerminal(t *testing.T) {
	s := newStage(t)
	s.hold("a")
	wantWords(t, s.typed(80, "status"), "\x1b[32mrunning ", "\x1b[1mSTATE\x1b[0m ")
	wantWords(t, s.typed(12, "status"), "ATOM  \x1b[1mSTATE\x1b[0m\r") // the header fits, the row does not
}
