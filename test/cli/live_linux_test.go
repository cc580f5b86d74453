package cli

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/sysfile"
	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// onTerminal starts the helper program on a terminal of its own; shown returns all output to
// the terminal. At the end of the test, processes left in its session are killed.
func (s *stage) onTerminal(columns uint16, words ...string) (pid int, shown func() string, ended func() bool) {
	s.Helper()
	p := s.atTerminal(columns, s.command(words...))
	return p.command.Process.Pid, p.shown, p.ended
}

// typed runs the helper program on a terminal of its own to its end, and returns all output to it.
func (s *stage) typed(columns uint16, words ...string) string {
	s.Helper()
	_, shown, ended := s.onTerminal(columns, words...)
	helper.Eventually(s, "it has ended", ended)
	return shown()
}

// atTerminal is a process that leads a session with a terminal of its own.
type atTerminal struct {
	command    *exec.Cmd
	keyboard   *os.File
	done, read chan struct{} // closed: it has ended; all its output was read
	mu         sync.Mutex
	all        strings.Builder
}

// atTerminal starts the command on a terminal of its own. At the end of the test, processes
// left in its session are killed.
func (s *stage) atTerminal(columns uint16, c helper.Command) *atTerminal {
	s.Helper()
	master, slave := openPTY(s, columns)
	p := &atTerminal{command: exec.Command(c.Args[0], c.Args[1:]...), keyboard: master, done: make(chan struct{}), read: make(chan struct{})}
	p.command.Dir, p.command.Env = c.Dir, append(append(need.Clean(), "TERM=vt100"), c.Env...)
	p.command.Stdin, p.command.Stdout, p.command.Stderr = slave, slave, slave
	p.command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	must(s, p.command.Start())
	slave.Close()
	go func() { _ = p.command.Wait(); close(p.done) }()
	s.Cleanup(func() {
		helper.KillSession(p.command.Process.Pid)
		<-p.done
	})
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, err := master.Read(buffer)
			if err != nil { // no process has the terminal any more
				close(p.read)
				return
			}
			p.mu.Lock()
			p.all.Write(buffer[:n])
			p.mu.Unlock()
		}
	}()
	return p
}

// shown returns all output to the terminal.
func (p *atTerminal) shown() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all.String()
}

// ended reports whether the process has ended, and no process has the terminal open.
func (p *atTerminal) ended() bool {
	select {
	case <-p.read:
		<-p.done
		return true
	default:
		return false
	}
}

func openPTY(s *stage, columns uint16) (master, slave *os.File) {
	s.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		need.Skip(s.T, "needs a pseudo terminal: ", err)
	}
	s.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	must(s, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	must(s, err)
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	must(s, err)
	must(s, unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}))
	return master, slave
}

// left returns what stays on the screen: of each line, the part after it was last cleared.
func left(shown string) string {
	var rows []string
	for row := range strings.SplitSeq(strings.ReplaceAll(shown, "\r\n", "\n"), "\n") {
		rows = append(rows, row[strings.LastIndex(row, "\x1b[K")+1:])
	}
	return strings.TrimPrefix(strings.Join(rows, "\n"), "[K")
}

func shows(s *stage, shown func() string, pattern string) {
	s.Helper()
	defer func() {
		if s.Failed() {
			s.Logf("shown: %q", shown())
		}
	}()
	helper.Eventually(s, "the terminal shows "+pattern, func() bool { return regexp.MustCompile(pattern).MatchString(shown()) })
}

func TestAWaiterAtATerminalShowsOwnerAndTime(t *testing.T) {
	s := newStage(t)
	owner := s.hold("a", "--expire-after", "2h")
	_, shown, ended := s.onTerminal(200, job("--wait", "5m", "echo", "ran")...)
	shows(s, shown, fmt.Sprintf(`run a: waiting for process %d: [0-9]s, at most (5m|4m5[0-9]s) more; it expires in (2h|1h59m)`, owner.PID))
	figures := regexp.MustCompile(`: [0-9]+s, at most [0-9ms]+ more`)
	helper.Eventually(t, "it is written anew", func() bool {
		all := figures.FindAllString(shown(), -1)
		return all[0] != all[len(all)-1]
	})
	owner.Signal(t, syscall.SIGTERM)
	helper.Eventually(t, "the job has run", ended)
	if got := left(shown()); got != "ran\n" {
		t.Errorf("left on the terminal: %q", got)
	}
}

func TestAnEndingAtATerminalShowsEachSignal(t *testing.T) {
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
	pid, shown, ended := s.onTerminal(30, job("--jitter", "50h", "true")...)
	shows(s, shown, `adlock|run a: starts in [0-9dhms]+`)
	helper.Eventually(t, "it listens to signals", func() bool { return listens(pid) })
	for row := range strings.SplitSeq(shown(), "\x1b[K") {
		if len(strings.TrimRight(row, "\r")) >= 30 {
			t.Errorf("%q does not fit into 30 columns", row)
		}
	}
	must(t, syscall.Kill(pid, syscall.SIGINT))
	helper.Eventually(t, "it is gone", ended)
	if got := left(shown()); got != "" {
		t.Errorf("left on the terminal: %q", got)
	}
}

// matches expects what a terminal has shown to match the pattern.
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

func TestADenialAtATerminalNamesNoStepThatDoesNothing(t *testing.T) {
	s := newStage(t)
	s.hold("full", "--slots", "1")
	s.plant("empty", "")
	s.plant("shlock", itoa(s.hold("other").PID)+"\n")
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
	helper.EndsWith(t, childOf(t, owner.PID, "sleep"))
	owner.Kill(t)
	whose := fmt.Sprintf(`process %d, which is dead, but processes of its job are left`, owner.PID)
	matches(s, s.typed(0, job("true")...), `: busy: running for [0-9ms]+, ExpireAfter is 2h \(its owner's\); `+whose+`, user [^ ]+, since `)
	matches(s, s.typed(200, job("--wait", "1s", "true")...), `run a: waiting for `+whose+`: [01]s, at most [01]s more`)
}

func TestHelpAtATerminalFitsIt(t *testing.T) {
	s := newStage(t)
	for _, verb := range []string{"run", "status", "wrap"} {
		whole := strings.Join(strings.Fields(s.want(0, verb, "--help").Out), " ")
		for columns, fits := range map[uint16]int{0: 80, 80: 80, 100: 100} { // 0: unknown
			_, shown, ended := s.onTerminal(columns, verb, "--help")
			helper.Eventually(t, "nothing is lost", func() bool { return ended() && strings.Join(strings.Fields(shown()), " ") == whole })
			for line := range strings.Lines(shown()) {
				if len(line) > fits+len("\r\n") {
					t.Errorf("%s in %d columns: longer than %d: %q", verb, columns, fits, line)
				}
			}
		}
	}
}
