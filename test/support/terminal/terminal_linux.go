// Package terminal runs programs at terminals of their own.
package terminal

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// Process leads a session with a terminal of its own.
type Process struct {
	*exec.Cmd
	Keyboard   *os.File
	done, read chan struct{} // closed: it has ended; all its output was read
	mu         sync.Mutex
	all        strings.Builder
}

// Start starts the command at a terminal with so many columns (0: it says none). At the end of the
// test, processes left in its session are killed.
func Start(t testing.TB, columns uint16, c helper.Command) *Process {
	t.Helper()
	master, slave := open(t, columns)
	p := &Process{Cmd: exec.Command(c.Args[0], c.Args[1:]...), Keyboard: master, done: make(chan struct{}), read: make(chan struct{})}
	p.Dir, p.Env = c.Dir, append(append(need.Clean(), "TERM=vt100"), c.Env...)
	p.Stdin, p.Stdout, p.Stderr = slave, slave, slave
	p.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := helper.StartWithin(p.Cmd); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	go func() { _ = p.Wait(); close(p.done) }()
	t.Cleanup(func() {
		helper.KillSession(p.Process.Pid)
		<-p.done
	})
	go p.readAll()
	return p
}

func (p *Process) readAll() {
	defer close(p.read)
	buffer := make([]byte, 4096)
	for {
		n, err := p.Keyboard.Read(buffer)
		if err != nil { // no process has the terminal any more
			return
		}
		p.mu.Lock()
		p.all.Write(buffer[:n])
		p.mu.Unlock()
	}
}

// Shown returns all output to the terminal.
func (p *Process) Shown() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all.String()
}

// Ended reports whether the process has ended, and no process has the terminal open.
func (p *Process) Ended() bool {
	select {
	case <-p.read:
		<-p.done
		return true
	default:
		return false
	}
}

// Shows waits until the terminal shows what matches the pattern.
func (p *Process) Shows(t testing.TB, pattern string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("shown: %q", p.Shown())
		}
	}()
	shows := regexp.MustCompile(pattern)
	helper.Eventually(t, "the terminal shows "+pattern, func() bool { return shows.MatchString(p.Shown()) })
}

// AllShown waits for the end, and returns all output to the terminal.
func (p *Process) AllShown(t testing.TB) string {
	t.Helper()
	helper.Eventually(t, "it has ended", p.Ended)
	return p.Shown()
}

func open(t testing.TB, columns uint16) (master, slave *os.File) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		need.Skip(t, "needs a pseudo terminal: ", err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	must(unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	must(err)
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	must(err)
	must(unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}))
	return master, slave
}
