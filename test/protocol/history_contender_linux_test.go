package protocol

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// contender is a process that leads its own group, and what it starts.
type contender struct {
	name   string
	cmd    *exec.Cmd
	stderr *os.File

	mu     sync.Mutex // signals are sent under it
	reaped bool       // the leader is gone
	over   bool       // no process of the group lives
	hit    bool       // the test has sent KILL to a process of the group
}

// start starts a contender. Its standard error goes to a file of the arena.
func (a arena) start(name string, env []string, args ...string) (*contender, error) {
	stderr, err := os.Create(filepath.Join(a.path, "stderr."+name))
	if err != nil {
		return nil, err
	}
	c := &contender{name: name, cmd: exec.Command(args[0], args[1:]...), stderr: stderr}
	c.cmd.Env, c.cmd.Stderr = env, stderr
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return c, c.cmd.Start()
}

func (c *contender) pid() int { return c.cmd.Process.Pid }

// wait returns when the leader has ended. No signal is sent between its end and its reaping, so
// that none reaches a later process with its pid.
func (c *contender) wait() error {
	err := error(unix.EINTR)
	for errors.Is(err, unix.EINTR) {
		err = unix.Waitid(unix.P_PID, c.pid(), nil, unix.WEXITED|unix.WNOWAIT, nil)
	}
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reaped = true
	var ended *exec.ExitError
	if err := c.cmd.Wait(); err != nil && !errors.As(err, &ended) {
		return err
	}
	return nil
}

// status is the leader's wait status.
func (c *contender) status() syscall.WaitStatus {
	return c.cmd.ProcessState.Sys().(syscall.WaitStatus)
}

// said returns the contender's standard error, and removes the file.
func (c *contender) said() (string, error) {
	text, err := os.ReadFile(c.stderr.Name())
	return string(text), errors.Join(err, c.stderr.Close(), os.Remove(c.stderr.Name()))
}

// await returns when no process of the group lives. Orphans become children of this process
// (PR_SET_CHILD_SUBREAPER), so that it can reap them.
func (c *contender) await() {
	for !c.empty() {
		time.Sleep(2 * time.Millisecond)
	}
}

func (c *contender) empty() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		reaped, err := unix.Wait4(-c.pid(), nil, unix.WNOHANG, nil)
		if reaped <= 0 && !errors.Is(err, unix.EINTR) {
			break
		}
	}
	c.over = errors.Is(unix.Kill(-c.pid(), 0), unix.ESRCH)
	return c.over
}

// how returns how the contender ended, for the event gone.
func (c *contender) how() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.hit:
		return killed
	case c.status().Signaled():
		return signaled
	}
	return ended
}

// group sends a signal to every process of the group.
func (c *contender) group(sig unix.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.hit = c.hit || sig == unix.SIGKILL
		_ = unix.Kill(-c.pid(), sig) // it may have ended by itself
	}
}

// leader sends a signal to the leader alone.
func (c *contender) leader(sig unix.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reaped {
		c.hit = c.hit || sig == unix.SIGKILL
		_ = c.cmd.Process.Signal(sig) // it may have ended by itself
	}
}

// child sends a signal to a child of the leader: the helper that it runs, or the
// job of an `adlock run`.
func (c *contender) child(sig unix.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped {
		return
	}
	leader := strconv.Itoa(c.pid())
	list, _ := os.ReadFile("/proc/" + leader + "/task/" + leader + "/children") // gone: none
	children := strings.Fields(string(list))
	if len(children) == 0 {
		return
	}
	pid, err := strconv.Atoi(children[rand.N(len(children))])
	if err != nil {
		return
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	again, _ := os.ReadFile("/proc/" + leader + "/task/" + leader + "/children")
	if strings.Contains(" "+string(again), " "+strconv.Itoa(pid)+" ") { // so the descriptor is the child's
		c.hit = c.hit || sig == unix.SIGKILL
		_ = unix.PidfdSendSignal(fd, sig, nil, 0)
	}
}

// crowd has all contenders of a round.
type crowd struct {
	mu   sync.Mutex
	list []*contender
	hits int // how many of the ended ones had been hit
}

func (c *crowd) join(one *contender) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, one)
}

func (c *crowd) leave(one *contender) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, other := range c.list {
		if other == one {
			c.list[i] = c.list[len(c.list)-1]
			c.list = c.list[:len(c.list)-1]
			break
		}
	}
	if one.how() == killed {
		c.hits++
	}
}

// all returns the present contenders.
func (c *crowd) all() []*contender {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*contender(nil), c.list...)
}

// trouble stops, continues and, with kills, kills a contender.
func (c *crowd) trouble(kills bool) {
	list := c.all()
	if len(list) == 0 {
		return
	}
	victim := list[rand.N(len(list))]
	dice := rand.N(10)
	switch {
	case kills && dice < 2:
		victim.leader(unix.SIGKILL)
	case kills && dice < 3:
		victim.group(unix.SIGKILL)
	case kills && dice < 5:
		victim.child(unix.SIGKILL)
	case dice < 8:
		victim.leader(unix.SIGSTOP)
		time.AfterFunc(stopped(), func() { victim.leader(unix.SIGCONT) })
	default:
		victim.group(unix.SIGSTOP)
		time.AfterFunc(stopped(), func() { victim.group(unix.SIGCONT) })
	}
}

// stopped is a length of a stop: a moment, or longer than ExpireAfter.
func stopped() time.Duration {
	if rand.N(10) == 0 {
		return expireAfter + rand.N(expireAfter)
	}
	return rand.N(expireAfter / 8)
}

// disperse continues the remaining contenders, and after the grace kills those that hang.
func (c *crowd) disperse(grace time.Duration, empty <-chan struct{}) {
	for _, one := range c.all() {
		one.group(unix.SIGCONT)
	}
	select {
	case <-empty:
		return
	case <-time.After(grace):
	}
	for {
		for _, one := range c.all() {
			one.group(unix.SIGKILL)
		}
		select {
		case <-empty:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}
