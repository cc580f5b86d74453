package protocol

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/test/support/helper"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// shells are those under which scripts contend. The first one, which starts fastest, runs two of three.
var shells = [][]string{
	{"dash"}, {"bash"}, {"bash", "--posix"}, {"busybox", "sh"},
	{"mksh"}, {"ksh"}, {"zsh", "--emulate", "sh"}, {"yash"},
}

const (
	usual      = 40 * time.Second
	stormRound = 8 * time.Second
	stormCrowd = 10 // contenders at a time
	calm       = 40 * time.Millisecond
	stageEnv   = "STORM_STAGE" // makes this test binary the stage
)

func TestAStormOfContendersBreaksNoPromise(t *testing.T) {
	need.Tools(t, "setsid", "timeout")
	for _, shell := range shells { // a storm does without those that are missing
		if _, err := exec.LookPath(shell[0]); err != nil && os.Getenv("ADLOCK_TEST_SKIP") == "no" {
			t.Fatal(err)
		}
	}
	dir := must.Get(os.MkdirTemp("", "adlock-storm-"))(t)
	must.Do(t, os.Chmod(dir, 0o700))
	compileBystander(t, filepath.Join(dir, bystander))
	binary := os.Getenv("ADLOCK_STORM_BINARY") // another build, by hand
	if binary == "" {
		binary = helper.Binary(t)
	}
	runtime.LockOSThread() // the stage dies with the thread that started it
	defer runtime.UnlockOSThread()
	stage := exec.Command("/proc/self/exe")
	stage.Env = append(os.Environ(), stageEnv+"="+dir, "STORM_BINARY="+binary)
	if !need.Soak {
		stage.Env = append(stage.Env, "ADLOCK_SOAK=10s")
	}
	stage.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL, Setsid: true,
	}
	if os.Geteuid() != 0 {
		need.Namespaces(t, "--user", "--map-root-user", "--pid", "--fork", "--mount-proc")
		stage.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		stage.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
		stage.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	} else {
		need.Namespaces(t, "--pid", "--fork", "--mount-proc")
	}
	stage.Stdout, stage.Stderr = os.Stdout, os.Stdout // as it comes: the long form runs for hours
	if err := stage.Run(); err != nil {
		t.Fatalf("%v; what it left is in %s", err, dir)
	}
	must.Do(t, os.RemoveAll(dir))
}

// bystander is a program that belongs to no job, and reports the sender of each signal.
const bystander = "bystander"

// compileBystander compiles that program. Without a compiler sleep(1) takes its place.
func compileBystander(t *testing.T, path string) {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil && os.Getenv("ADLOCK_TEST_SKIP") != "no" {
		return
	}
	if out, err := exec.Command("gcc", "-O2", "-Wall", "-Werror", "-o", path, "testdata/bystander.c").CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
}

// play is the stage's process: it plays round after round, and judges each.
func play(dir string) error {
	// The parent's /proc shows the parent's processes.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	lasts := usual
	var err error
	if text := os.Getenv("ADLOCK_SOAK"); text != "" {
		if lasts, err = time.ParseDuration(text); err != nil {
			return err
		}
	}
	seed := uint64(time.Now().UnixNano()) % 1_000_000
	if text := os.Getenv("ADLOCK_STORM_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			return err
		}
	}
	fmt.Printf("ADLOCK_STORM_SEED=%d\n", seed)

	guard, err := os.ReadFile(filepath.Join(helper.Root(), "test/protocol/storm_guard.sh"))
	if err != nil {
		return err
	}
	for n := range families["g"] {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("g%d.sh", n)), guard, 0o600); err != nil {
			return err
		}
	}
	s, err := newStage(dir, os.Getenv("STORM_BINARY"), stormAtoms())
	if err != nil {
		return err
	}
	st := &storm{s: s, seed: seed, began: time.Now(), lasts: lasts, tally: map[string]int{}}
	st.trouble = &trouble{Rand: st.source(0), luck: st.source(1), s: s, signals: map[string]int{}, awaited: map[string]bool{}}
	for _, shell := range shells {
		if _, err := exec.LookPath(shell[0]); err == nil {
			st.shells = append(st.shells, shell)
		}
	}
	broken := 0
	for time.Since(st.began) < st.lasts-stormRound/4 {
		err := st.round()
		if err == nil {
			continue
		}
		fmt.Printf("ADLOCK_STORM_SEED=%d, round %d: %v\n", seed, st.rounds, err)
		if broken++; broken == enough {
			break
		}
	}
	fmt.Println(st.figures())
	if broken > 0 {
		return fmt.Errorf("promises were broken in %d of %d rounds", broken, st.rounds)
	}
	return nil
}

// enough is how many rounds that break a promise end a storm. Those after the first are worth
// knowing too, but later ones may only follow from them.
const enough = 5

type storm struct {
	s       *stormStage
	trouble *trouble
	shells  [][]string
	seed    uint64
	lasts   time.Duration
	began   time.Time
	rounds  int
	tally   map[string]int
}

// source is a source of random numbers, one for each user of it.
func (st *storm) source(n uint64) *rand.Rand { return rand.New(rand.NewPCG(st.seed, n)) }

func (st *storm) figures() string {
	n, took := st.s.acquired.Load(), time.Since(st.began)
	return fmt.Sprintf("%d acquisitions in %v, %.0f a second; rounds %d, signals %v, bystanders %d, of which %d with a pid of the dead; attempts %v",
		n, took.Round(time.Second), float64(n)/took.Seconds(), st.rounds, st.trouble.signals, st.trouble.started, st.trouble.recycled, st.tally)
}

// round has a crowd contend in the storm, waits until all is quiet, and judges.
func (st *storm) round() error {
	st.rounds++
	length := max(time.Second, min(stormRound, st.lasts-time.Since(st.began)))
	over := make(chan struct{})
	time.AfterFunc(length, func() { close(over) })
	stop := filepath.Join(st.s.dir, "stop")
	if err := os.RemoveAll(stop); err != nil {
		return err
	}
	// This process leads a group with other members, like the shell of run-parts.
	leader, err := st.s.start(nil, []string{"sleep", "100000"}, os.Environ(), &syscall.SysProcAttr{Setpgid: true}, null, 0)
	if err != nil {
		return err
	}
	var players, striking, stopped sync.WaitGroup
	for n := range stormCrowd {
		players.Go(func() {
			name := string(rune('A' + n))
			player := &troupe{
				Rand: st.source(uint64(st.rounds*100 + n + 1)), s: st.s, shells: st.shells,
				name: fmt.Sprintf("%s%d-", name, st.rounds), group: leader.pid,
			}
			for !isClosed(over) {
				if _, err := st.perform(player.next(), name); err != nil {
					panic(err)
				}
			}
		})
	}
	striking.Go(func() {
		for !isClosed(over) {
			st.trouble.strike(&stopped)
			if st.trouble.IntN(3) == 0 {
				st.trouble.bystander(0, false)
			}
			time.Sleep(time.Duration(st.trouble.Int64N(int64(calm))))
		}
	})
	<-over
	if err := os.WriteFile(stop, nil, 0o600); err != nil {
		return err
	}
	striking.Wait()
	stopped.Wait()
	st.settle(&players, leader)
	return st.judge()
}

var isClosed = helper.IsClosed

// perform starts a contender, and notes its end and its output.
func (st *storm) perform(c *stormContender, name string) (status int, err error) {
	path := filepath.Join(st.s.dir, "stderr."+name)
	trouble, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	defer trouble.Close()
	if err := trouble.Truncate(0); err != nil {
		return 0, err
	}
	for _, id := range slices.Sorted(maps.Keys(c.calls)) {
		st.s.tell("call", id, c.calls[id])
	}
	child, err := st.s.start(c, c.args, c.env, &c.attr, trouble, 0)
	if err != nil {
		return 0, err
	}
	st.s.tell("start", c.id, child.pid, fmt.Sprintf("%q", c.args))
	status = code(<-child.ended)
	if c.run {
		st.s.tell("end", c.id, status)
	}
	st.s.tell("exit", c.id, status)
	if status > 128 {
		// If the dead owner led its session too, a daemon that gets its pid looks like an
		// orphan of its job: no promise covers it (doc.go).
		st.trouble.bystander(child.pid, !c.attr.Setsid)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(text) {
		kind := "says"
		for _, trace := range []string{"panic", "fatal error", "goroutine "} {
			if bytes.HasPrefix(line, []byte(trace)) {
				kind = "trace"
			}
		}
		st.s.tell(kind, c.id, string(line[:min(len(line)-1, 300)]))
		if kind == "trace" {
			break
		}
	}
	return status, nil
}

// settle ends jobs that hang on purpose, and waits for all others to end by themselves; then each atom must be free.
func (st *storm) settle(players *sync.WaitGroup, leader *child) {
	ended := make(chan struct{})
	go func() { players.Wait(); close(ended) }()
	deadline := time.Now().Add(helper.Patience)
	// A table is no snapshot: a process that forks and ends meanwhile may hide its child.
	for quiet := 0; quiet < 3; {
		if time.Now().After(deadline) {
			for _, p := range table() {
				if p.pid != 1 && p.pid != leader.pid {
					st.s.tell("hangs", "stage", p.pid, p.parent, string(p.state), p.name, p.command(), p.waitsIn())
				}
			}
			return
		}
		time.Sleep(10 * time.Millisecond)
		busy := !isClosed(ended)
		for _, p := range table() {
			if p.pid == 1 || p.pid == leader.pid || p.state == 'Z' {
				continue
			}
			busy = true
			if p.command() == "sleep 60" {
				st.wake(p)
			}
		}
		if quiet++; busy {
			quiet = 0
		}
	}
	if len(leader.ended) > 0 {
		st.s.tell("stranger", "leader", leader.pid)
	} else if err := unix.Kill(leader.pid, syscall.SIGKILL); err == nil {
		<-leader.ended
	}
	for _, atom := range stormAtoms() {
		st.free(atom)
	}
	left, _ := filepath.Glob(filepath.Join(st.s.locks, "lock.*.dax.o.*"))
	for _, path := range left {
		st.s.tell("remains", "stage", filepath.Base(path))
	}
}

// wake ends a job that hangs on purpose.
func (st *storm) wake(p stormProcess) {
	st.s.reaping.Lock()
	defer st.s.reaping.Unlock()
	id := "orphan"
	if c, _ := st.trouble.place(line(p.pid)); c != nil {
		id = c.id
	}
	st.s.tell("sig", id, "KILL", "settling", p.pid)
	p.send(syscall.SIGKILL)
}

// free expects that an atom can be taken at once after the end of all contenders.
func (st *storm) free(atom string) {
	t := &troupe{Rand: st.source(uint64(st.rounds)), s: st.s, shells: st.shells[:1]}
	c := &stormContender{id: fmt.Sprintf("free%d-%s", st.rounds, atom), calls: map[string]stormTerms{}, env: t.env()}
	w := stormTerms{atom: atom, limit: -1, denied: denied}
	switch atom[0] {
	case 'g':
		c.env = append(c.env, "STORM_LIMIT=never", "ADLOCK_EXIT_DENIED=75")
		t.supervised(c, w, t.shell(), []string{filepath.Join(st.s.dir, atom+".sh"), c.id})
	case 's':
		w.slots = slotsOfS
		fallthrough
	default:
		t.supervised(c, w, t.run(w), t.job(c.id, w, "q"))
	}
	c.attr = syscall.SysProcAttr{Setsid: true}
	status, err := st.perform(c, "F")
	if err != nil {
		panic(err)
	}
	if status != 0 {
		names, _ := filepath.Glob(filepath.Join(st.s.locks, "lock.*"))
		st.s.tell("remains", c.id, atom, status, strings.Join(names, " "))
	}
}

// judge judges the round that is over.
func (st *storm) judge() error {
	events, err := st.s.past()
	if err != nil {
		return err
	}
	for _, e := range events {
		if e.kind == "safe" {
			delete(st.trouble.awaited, e.id)
		}
	}
	found := judge(events)
	if err := checkRunlog(st.s.locks, "dax", events); err != nil {
		found = append(found, violation{promise: err.Error()})
	}
	_ = os.Remove(filepath.Join(st.s.locks, "program.dax.runlog")) // the next round has its own
	for id := range st.trouble.awaited {
		found = append(found, violation{promise: "a daemon that had a dead owner's pid was ended", ids: []string{id}})
	}
	for _, e := range events {
		switch e.kind {
		case "end", "got", "with":
			st.tally[e.kind+" "+e.word(0)]++
		case "exit":
			if crashed(e.status()) {
				st.tally["crash "+e.word(0)]++
			}
		}
	}
	if len(found) == 0 {
		if st.rounds%60 == 0 {
			fmt.Println(st.figures())
		}
		return nil
	}
	var all strings.Builder
	for _, e := range events {
		fmt.Fprintln(&all, e)
	}
	path := filepath.Join(st.s.dir, fmt.Sprint("history.", st.rounds))
	if err := os.WriteFile(path, []byte(all.String()), 0o600); err != nil {
		return err
	}
	var told []error
	for _, v := range found[:min(len(found), 4)] {
		told = append(told, errors.New(v.tell(events)))
	}
	return fmt.Errorf("%d promises broken; the whole history is in %s\n%w", len(found), path, errors.Join(told...))
}
