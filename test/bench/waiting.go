package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/lockdir"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/runlog"
)

// holdFile holds flock(2) on a file until release is called.
func (s *scene) holdFile(name string) (release func(), err error) {
	fd, err := unix.Open(filepath.Join(s.dir, name), unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(fd, unix.LOCK_EX); err != nil {
		return nil, err
	}
	return func() { unix.Close(fd) }, nil
}

// holdAtom holds an atom until release is called. The owner is another process, which does nothing
// and ends with this process: if this process owned the atom, a newcomer that it starts would be
// inside its job.
func (s *scene) holdAtom(program, operator, operand string) (release func(), err error) {
	owner := exec.Command("cat")
	in, err := owner.StdinPipe()
	if err = errors.Join(err, owner.Start()); err != nil {
		return nil, err
	}
	end := func() { in.Close(); _ = owner.Wait() }
	dir := filepath.Join(s.dir, "locks")
	k, err := lockdir.Open(dir, locker.Recorder{Log: &runlog.Log{Dir: dir, Host: "bench"}})
	if err != nil {
		end()
		return nil, err
	}
	r := locker.NewRequest()
	r.Atom = atom.Atom{Program: program, Host: "bench", Operator: operator, Operand: operand}
	r.Limits = policy.Limits{ExpireAfter: time.Hour, Source: policy.Said}
	var failed error
	r.Owner, failed = process.Of(owner.Process.Pid)
	outcome, err := k.Take(r)
	if err = errors.Join(failed, err); err == nil && outcome.Verdict != locker.Acquired {
		err = fmt.Errorf("%s %s: %s", operator, operand, outcome.Verdict)
	}
	if err != nil {
		end()
		return nil, err
	}
	return func() {
		_ = k.Release(locker.ReleaseRequest{Name: r.Atom.Name(), Token: outcome.Token})
		end()
	}, nil
}

// waiter is a job that waits for a lock.
type waiter struct {
	name, script string
	atom         atom.Atom // zero: it waits for the file FILE
	goals        []goal
}

// handOver measures the time from the release of a lock to the first step of its waiter.
func (b bench) handOver() table {
	named := atom.Named("hand", "bench")
	held := atom.Atom{Program: "script", Host: "bench", Operator: "hand", Operand: "a"}
	const job, inside = "flock FILE job", "exec 9>FILE; flock 9"
	t := table{letter: "e", title: "from the release to the start of what waits", unit: duration, shells: common}
	for _, w := range []waiter{
		{job, "exec flock hand echo", atom.Atom{}, nil},
		{"adlock run --wait forever job", `exec "$ADLOCK_BIN" run --name hand --wait forever echo`, named, []goal{{most: 1.5, beside: job}}},
		{inside, "exec 9>hand; flock 9; echo", atom.Atom{}, nil},
		{"adlock_get, ADLOCK_WAIT=forever", library + "\nADLOCK_WAIT=forever; adlock_get hand a 0 || exit; echo; adlock_release", held, []goal{{most: 1.5, beside: inside}}},
	} {
		t.ways = append(t.ways, way{name: w.name, goals: w.goals, needs: []string{"flock"}, once: w.handedOver})
	}
	return t
}

func (w waiter) handedOver(s *scene, shell string) (float64, string, error) {
	release, err := s.hold(w.atom)
	if err != nil {
		return 0, "", err
	}
	defer func() { release() }()
	c, out, err := s.begin(shell, w.script)
	if err != nil {
		return 0, "", err
	}
	at := make(chan time.Time, 1)
	go func() {
		_, _ = bufio.NewReader(out).ReadString('\n')
		at <- time.Now()
	}()
	s.settled(c)
	released := time.Now()
	release()
	release = func() {}
	took := (<-at).Sub(released)
	if err := c.Wait(); err != nil {
		return 0, "", fmt.Errorf("%w: %s", err, c.Stderr)
	}
	return micros(took), "", nil
}

// hold holds an atom, or the file if there is none. The returned function is called once.
func (s *scene) hold(a atom.Atom) (release func(), err error) {
	if a == (atom.Atom{}) {
		return s.holdFile("hand")
	}
	return s.holdAtom(a.Program, a.Operator, a.Operand)
}

// begin starts a script and returns its output.
func (s *scene) begin(shell, text string) (*exec.Cmd, *os.File, error) {
	path, err := s.write(text + "\n")
	if err != nil {
		return nil, nil, err
	}
	c := s.command(shell, path)
	out, in, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer in.Close()
	c.Stdout, c.SysProcAttr = in, &unix.SysProcAttr{Setsid: true}
	_, err = c.StdinPipe() // its reader ends with this process
	return c, out, errors.Join(err, c.Start())
}

// settled waits until the processes of a command's session do nothing for a tenth of a second.
func (s *scene) settled(c *exec.Cmd) {
	for before, now := "", " "; before != now; {
		time.Sleep(100 * time.Millisecond)
		before, now = now, ""
		for _, pid := range session(c.Process.Pid) {
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			_, state, _ := bytes.Cut(text, []byte(") "))
			now += fmt.Sprint(pid, string(state))
		}
	}
}

// session lists the processes of a session.
func session(pid int) (members []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if other, err := strconv.Atoi(e.Name()); err == nil {
			if sid, err := unix.Getsid(other); err == nil && sid == pid {
				members = append(members, other)
			}
		}
	}
	return members
}

// contention measures how often a lock changes hands among many contenders, and how evenly. The
// fairness is Jain's index: 1 if all had the lock equally often, 1/n if one had it all the time.
func (b bench) contention() table {
	t := table{letter: "f", title: fmt.Sprintf("%d contenders for %v", b.contenders, b.contended), unit: rate, shells: common[:1], heavy: true}
	for _, w := range []struct{ name, take, tool string }{
		{"flock FILE job", `flock crowd echo "$1"`, "flock"},
		{"adlock run --wait forever job", `"$ADLOCK_BIN" run --name crowd --wait forever echo "$1"`, "adlock"},
		{"setlock FILE job", `setlock crowd echo "$1"`, "setlock"},
	} {
		once := func(s *scene, shell string) (float64, string, error) { return b.contend(s, shell, w.take) }
		v := way{name: w.name, once: once}
		if w.tool != "adlock" {
			v.needs = []string{w.tool}
		}
		t.ways = append(t.ways, v)
	}
	return t
}

// contend has each contender print its number each time it gets the lock.
func (b bench) contend(s *scene, shell, take string) (float64, string, error) {
	script, err := s.write(`until [ -e "$0.stop" ]; do ` + take + ` || exit; done >>"$0.told"` + "\n")
	if err != nil {
		return 0, "", err
	}
	var all []*exec.Cmd
	for i := range b.contenders {
		c := s.command(shell, script)
		c.Args = append(c.Args, strconv.Itoa(i))
		if err := c.Start(); err != nil {
			return 0, "", err
		}
		all = append(all, c)
	}
	awaitContent(script + ".told") // a contender has had the lock
	began := time.Now()
	time.Sleep(b.contended)
	text, failed := os.ReadFile(script + ".told")
	took := time.Since(began)
	failed = errors.Join(failed, os.WriteFile(script+".stop", nil, 0o600))
	for _, c := range all {
		if err := c.Wait(); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%w: %s", err, c.Stderr))
		}
	}
	turns := b.turns(string(text))
	count, index := jain(turns)
	return count / took.Seconds(), fmt.Sprintf("fairness %.2f, each %.0f to %.0f", index, slices.Min(turns), slices.Max(turns)), failed
}

// awaitContent waits until the file has content, for at most 30 s: its writer may have failed.
func awaitContent(path string) {
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if file, err := os.Stat(path); err == nil && file.Size() > 0 {
			return
		}
	}
}

// turns counts how often each contender has printed its number.
func (b bench) turns(told string) []float64 {
	turns := make([]float64, b.contenders)
	for number := range strings.FieldsSeq(told) {
		if i, err := strconv.Atoi(number); err == nil && i < len(turns) {
			turns[i]++
		}
	}
	return turns
}

// jain returns the sum, and Jain's index of fairness: the square of the sum, divided by n times the
// sum of the squares.
func jain(turns []float64) (sum, index float64) {
	var squares float64
	for _, n := range turns {
		sum, squares = sum+n, squares+n*n
	}
	return sum, sum * sum / (squares * float64(len(turns)))
}

// memory measures the resident memory of processes that stay: waiters, a supervisor, an agent.
func (b bench) memory() table {
	const eight = 8
	limit := []goal{{most: eight}}
	t := table{letter: "h", title: "memory and descriptors of what stays", unit: megabytes, shells: common[:1]}
	for _, w := range []struct {
		name, script string
		atom         bool // it waits for the atom, not for the file
		goals        []goal
		find         func(s *scene, session int) int
	}{
		{"flock FILE job, waiting", "exec flock hand true", false, nil, leader},
		{"adlock run --wait forever job, waiting", `exec "$ADLOCK_BIN" run --name hand --wait forever true`, true, limit, leader},
		{"adlock run job, supervising", `exec "$ADLOCK_BIN" run --name other cat`, false, limit, leader},
		{"the agent of a pass", library + "\nadlock_pass; for i in 1 2 3; do adlock_get get a$i 0 || exit; adlock_release; done; read line", false, limit, agentOf},
	} {
		t.ways = append(t.ways, way{name: w.name, goals: w.goals, once: func(s *scene, shell string) (float64, string, error) {
			var held atom.Atom
			if w.atom {
				held = atom.Named("hand", "bench")
			}
			return s.resident(shell, w.script, held, w.find)
		}})
	}
	return t
}

// resident returns the memory, in MB, of the process that find finds in a script's session.
func (s *scene) resident(shell, script string, held atom.Atom, find func(*scene, int) int) (float64, string, error) {
	release, err := s.hold(held)
	if err != nil {
		return 0, "", err
	}
	defer release()
	c, out, err := s.begin(shell, script)
	if err != nil {
		return 0, "", err
	}
	defer out.Close()
	defer s.end(c)
	s.settled(c)
	pid := find(s, c.Process.Pid)
	if pid == 0 {
		return missing, "there is none", nil
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	files, failed := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	var size, pages int
	_, _ = fmt.Sscan(string(text), &size, &pages)
	return float64(pages*os.Getpagesize()) / (1 << 20), fmt.Sprintf("%d descriptors", len(files)), errors.Join(err, failed)
}

// end ends a script and its children. The supervisor of a job ends the job itself.
func (s *scene) end(c *exec.Cmd) {
	for _, pid := range session(c.Process.Pid) {
		_ = unix.Kill(pid, unix.SIGTERM)
	}
	_ = c.Wait()
}

// leader is the script's process, or the program that it became.
func leader(_ *scene, pid int) int { return pid }

// agentOf returns the pid of the agent that serves a script, the one process that runs the helper's
// program; 0 if there is none.
func agentOf(s *scene, _ int) int {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		program, err := os.Readlink("/proc/" + e.Name() + "/exe")
		if pid, other := strconv.Atoi(e.Name()); err == nil && other == nil && program == filepath.Join(s.dir, "adlock") {
			return pid
		}
	}
	return 0
}
