package protocol

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// trouble stops, continues and ends processes that it may end, and starts bystanders.
type trouble struct {
	*rand.Rand
	s        *stormStage
	signals  map[string]int
	started  int // bystanders
	recycled int // those that got the intended pid

	mu      sync.Mutex
	luck    *rand.Rand      // for bystanders
	awaited map[string]bool // daemons that must still report that no signal came
}

// place finds the contender of a process by the line of its ancestors, and the depth of the process
// below it; a depth below 0 means a bystander. The caller keeps the stage from reaping meanwhile.
func (t *trouble) place(line []stormProcess) (*stormContender, int) {
	for depth, p := range line {
		if c := t.s.children[p.pid]; c != nil && c.of == nil {
			return nil, -1
		} else if c != nil {
			c.of.name = p.name
			return c.of, depth
		}
	}
	return nil, 0
}

// mayEnd reports whether the storm may send a process a fatal signal.
func mayEnd(c *stormContender, depth int, p stormProcess, sig syscall.Signal) bool {
	switch {
	case depth == 0 && sig == syscall.SIGKILL:
		return c.mortal && c.killable
	case depth == 0:
		return c.mortal
	case c.name != "adlock" && depth == 1 && (p.name == "adlock" && !strings.Contains(p.command(), " run ") || p.name == c.name && !c.subshell):
		return true // a helper, or a fork that has yet to execute one
	case c.run && depth == 1:
		return c.command
	}
	return c.rest
}

// strike sends one signal to a random process.
func (t *trouble) strike(stopped *sync.WaitGroup) {
	t.s.reaping.Lock()
	defer t.s.reaping.Unlock()
	pids := allPIDs()
	all := line(pids[t.IntN(len(pids))])
	if len(all) == 0 {
		return
	}
	p := all[0]
	c, depth := t.place(all)
	if p.pid == 1 || p.state == 'Z' || depth < 0 {
		return
	}
	sig := []syscall.Signal{
		syscall.SIGSTOP, syscall.SIGSTOP, syscall.SIGSTOP, syscall.SIGCONT,
		syscall.SIGKILL, syscall.SIGKILL, syscall.SIGKILL, syscall.SIGTERM, syscall.SIGTERM, syscall.SIGINT,
	}[t.IntN(10)]
	if c != nil && c.trapped && depth == 0 && t.IntN(4) > 0 {
		if _, begun := t.s.begun.Load(c.id); !begun {
			return // its trap may not be set yet
		}
		sig = syscall.SIGUSR1
	}
	ends := sig == syscall.SIGKILL || sig == syscall.SIGTERM || sig == syscall.SIGINT
	if ends && (c == nil || !mayEnd(c, depth, p, sig)) {
		return
	}
	fd, ok := p.hold()
	if !ok {
		return
	}
	id := "orphan"
	if c != nil {
		id = c.id
	}
	name := strings.TrimPrefix(unix.SignalName(sig), "SIG")
	t.s.tell("sig", id, name, depth, p.pid, p.name)
	t.signals[name]++
	_ = unix.PidfdSendSignal(fd, sig, nil, 0) // it may be gone
	if sig != syscall.SIGSTOP {
		unix.Close(fd)
		return
	}
	stopped.Add(1)
	rest := time.Duration(t.IntN(700)) * time.Millisecond
	time.AfterFunc(rest, func() {
		defer stopped.Done()
		_ = unix.PidfdSendSignal(fd, syscall.SIGCONT, nil, 0) // it may be gone
		unix.Close(fd)
	})
}

// bystander starts a bystander, with that pid if possible (0: any). If a signal ends it, that is noted.
func (t *trouble) bystander(at int, daemons bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.started++
	id := fmt.Sprintf("z%d", t.started)
	attr := &syscall.SysProcAttr{Setsid: t.luck.IntN(2) == 0}
	seconds := fmt.Sprintf("0.%d", 1+t.luck.IntN(6))
	args := []string{"sleep", seconds}
	program := filepath.Join(t.s.dir, bystander)
	if _, err := os.Stat(program); err == nil {
		args = []string{program, id, seconds, filepath.Join(t.s.dir, "events")}
	}
	if daemons && t.luck.IntN(2) == 0 {
		// Its leader ends at once: the rest has a group and a session whose number is the dead owner's pid.
		attr.Setsid = true
		args = []string{"sh", "-c", `(sleep 0.3 || exit; read -r up _ </proc/uptime; echo "safe $0 $up" >"$STORM/events") &`, id}
		t.awaited[id] = true
	}
	c, err := t.s.start(nil, args, append(os.Environ(), "STORM="+t.s.dir), attr, null, at)
	if err != nil {
		panic(err)
	}
	if c.pid == at {
		t.recycled++
	}
	t.s.tell("pid", id, c.pid, filepath.Base(args[0]))
	go func() {
		if status := <-c.ended; status.Signaled() {
			t.s.tell("stranger", id, c.pid, code(status))
		}
	}()
}
