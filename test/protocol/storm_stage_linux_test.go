package protocol

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stormStage is the first process of a pid namespace of its own: no process that is started here
// outlives it, orphans come to it, and no signal of the test can reach a process outside.
type stormStage struct {
	dir      string // of the pipes
	locks    string // the lock directory
	binary   string
	pipe     *os.File // events
	acquired atomic.Int64
	begun    sync.Map // contenders that have made an attempt

	reaping  sync.Mutex // held during a look at a process, so that its pid is not reused
	children map[int]*child

	telling sync.Mutex
	history []stormEvent
	broken  error // a line since the last look at the past that is no event
}

// newStage makes the pipes, and begins to read and to reap.
func newStage(dir, binary string, atoms []string) (*stormStage, error) {
	s := &stormStage{dir: dir, locks: filepath.Join(dir, "locks"), binary: binary, children: map[int]*child{}}
	if err := os.Mkdir(s.locks, 0o700); err != nil {
		return nil, err
	}
	for _, atom := range atoms {
		if err := unix.Mkfifo(filepath.Join(dir, "alive."+atom), 0o600); err != nil {
			return nil, err
		}
	}
	events := filepath.Join(dir, "events")
	if err := unix.Mkfifo(events, 0o600); err != nil {
		return nil, err
	}
	var err error
	// Both ends: the pipe has no end of input, and no writer waits for a reader.
	if s.pipe, err = os.OpenFile(events, os.O_RDWR, 0); err != nil {
		return nil, err
	}
	_, _ = unix.FcntlInt(s.pipe.Fd(), unix.F_SETPIPE_SZ, 1<<20) // or it stays smaller
	go s.read()
	go s.reap()
	return s, nil
}

// read reads the events as they come.
func (s *stormStage) read() {
	fd, err := unix.Open(filepath.Join(s.dir, "events"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		panic(err)
	}
	lines := bufio.NewScanner(os.NewFile(uintptr(fd), "events"))
	for lines.Scan() {
		e, err := parseStorm(lines.Text())
		s.telling.Lock()
		if err != nil && s.broken == nil {
			s.broken = err
		}
		if err == nil {
			s.history = append(s.history, e)
		}
		s.telling.Unlock()
		switch e.kind {
		case "in":
			s.acquired.Add(1)
		case "call":
			s.begun.Store(rootOf(e.id), true)
		case "exit":
			s.begun.Delete(e.id)
		}
	}
}

// uptime is the clock of /proc/uptime, which a shell reads without a fork.
func uptime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		panic(err) // every Linux since 2.6.39 has it
	}
	return time.Duration(now.Nano())
}

// tell notes an event of the stage's own.
func (s *stormStage) tell(kind, id string, words ...any) {
	line := fmt.Sprintf("%s %s %.3f %s", kind, id, uptime().Seconds(), fmt.Sprintln(words...))
	if _, err := s.pipe.WriteString(line); err != nil {
		panic(err)
	}
}

// past returns the history so far, and forgets it.
func (s *stormStage) past() ([]stormEvent, error) {
	mark := fmt.Sprint("m", uptime().Nanoseconds())
	s.tell("mark", mark)
	for {
		s.telling.Lock()
		for i, e := range s.history {
			if e.kind == "mark" && e.id == mark {
				events := s.history[:i]
				s.history = append([]stormEvent(nil), s.history[i+1:]...)
				broken := s.broken
				s.broken = nil
				s.telling.Unlock()
				return events, broken
			}
		}
		s.telling.Unlock()
		time.Sleep(time.Millisecond)
	}
}

// child is a process that the stage has started, and not yet reaped: while it is in the stage's
// list, no other process has its pid.
type child struct {
	pid   int
	of    *stormContender // nil: a bystander
	ended chan syscall.WaitStatus
}

// start starts a process. With at above 0 it gets this pid, if the pid is free; otherwise the namespace's next one.
func (s *stormStage) start(of *stormContender, args, env []string, attr *syscall.SysProcAttr, trouble *os.File, at int) (*child, error) {
	s.reaping.Lock()
	defer s.reaping.Unlock()
	if at > 0 {
		const last = "/proc/sys/kernel/ns_last_pid"
		before, _ := os.ReadFile(last)
		_ = os.WriteFile(last, []byte(strconv.Itoa(at-1)), 0) // not allowed: another pid
		// Then pids rise again from where they were: of the processes of one tick of the clock, those with
		// higher pids count as the later ones (mark.isLater in lib/process).
		defer os.WriteFile(last, before, 0)
	}
	path, err := exec.LookPath(args[0])
	if err != nil {
		return nil, err
	}
	pid, err := syscall.ForkExec(path, args, &syscall.ProcAttr{
		Dir: s.dir, Env: env, Sys: attr,
		Files: []uintptr{null.Fd(), trouble.Fd(), trouble.Fd()},
	})
	if err != nil {
		return nil, err
	}
	c := &child{pid, of, make(chan syscall.WaitStatus, 1)}
	s.children[pid] = c
	return c, nil
}

var null = func() *os.File {
	f, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	return f
}()

// reap reaps ended processes, orphans too.
func (s *stormStage) reap() {
	for {
		s.reaping.Lock()
		for {
			var status syscall.WaitStatus
			pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
			if err == syscall.EINTR {
				continue
			}
			if err != nil || pid <= 0 {
				break
			}
			if c := s.children[pid]; c != nil {
				delete(s.children, pid)
				c.ended <- status
			}
		}
		s.reaping.Unlock()
		// Wait until the next one can be reaped.
		if err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOWAIT, nil); err == unix.ECHILD {
			time.Sleep(time.Millisecond)
		}
	}
}

// code returns a status as a shell does.
func code(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// stormProcess is an entry of the process table.
type stormProcess struct {
	pid, parent int
	state       byte
	start       string
	name        string
}

// allPIDs returns the pids of all processes on the stage.
func allPIDs() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		panic(err)
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // a process that comes or goes meanwhile may be missed
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// table returns all processes on the stage.
func table() []stormProcess {
	var all []stormProcess
	for _, pid := range allPIDs() {
		if p, ok := lookUp(pid); ok {
			all = append(all, p)
		}
	}
	return all
}

// line returns a process and its ancestors, without the stage; nil if it is the stage, or gone.
func line(pid int) []stormProcess {
	var all []stormProcess
	for pid > 1 {
		p, ok := lookUp(pid)
		if !ok {
			return nil
		}
		all = append(all, p)
		pid = p.parent
	}
	return all
}

// waitsIn returns the system call in which the process sleeps (proc_pid_syscall(5)), and where its descriptors lead.
func (p stormProcess) waitsIn() string {
	call, _ := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", p.pid)) // it may be gone
	text := "in " + strings.TrimSpace(string(call))
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.pid))
	for _, link := range links {
		leads, _ := os.Readlink(link)
		text += " " + filepath.Base(link) + "=" + leads
	}
	return text
}

// lookUp reads /proc/PID/stat (proc(5)).
func lookUp(pid int) (stormProcess, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stormProcess{}, false
	}
	open, close := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	fields := strings.Fields(string(text[close+1:]))
	parent, _ := strconv.Atoi(fields[1])
	return stormProcess{pid, parent, fields[0][0], fields[19], string(text[open+1 : close])}, true
}

// command is the command line, its words separated by blanks.
func (p stormProcess) command() string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.pid))
	return strings.TrimSpace(strings.ReplaceAll(string(text), "\x00", " "))
}

// hold returns a pidfd of the same process that the table showed.
func (p stormProcess) hold() (int, bool) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return -1, false
	}
	if now, ok := lookUp(p.pid); !ok || now.start != p.start || now.parent != p.parent {
		unix.Close(fd)
		return -1, false
	}
	return fd, true
}

// send sends the process a signal; false if it is gone.
func (p stormProcess) send(sig syscall.Signal) bool {
	fd, ok := p.hold()
	if !ok {
		return false
	}
	defer unix.Close(fd)
	return unix.PidfdSendSignal(fd, sig, nil, 0) == nil
}
