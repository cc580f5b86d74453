package process

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/test/need"
)

// brief is for jobs that are known to outlive a signal: what a shell starts
// with & ignores INT.
const brief = 100 * time.Millisecond

func TestEndOfASleeperNeedsNoMoreThanINT(t *testing.T) {
	a := sleeper(t, leads)
	var r recorder
	mustEnd(t, r.killer(patient), Job{Owner: a.id(), FileUID: os.Getuid()})
	if !gone(a.pid()) || r.to(a.pid()) != "CONT INT" {
		t.Errorf("gone %v, sent %v", gone(a.pid()), r.sent)
	}
}

func TestStoppedOwnerIsEnded(t *testing.T) {
	a := sleeper(t, leads)
	unix.Kill(a.pid(), unix.SIGSTOP)
	eventually(t, "stopped", func() bool { return state(a.pid()) == "T" })
	var r recorder
	mustEnd(t, r.killer(patient), Job{Owner: a.id(), FileUID: os.Getuid()})
	if r.to(a.pid()) != "CONT INT" {
		t.Errorf("sent %v", r.sent)
	}
}

func TestOwnerDeafToINTAndTERMIsKilled(t *testing.T) {
	ready := file(t, "ready")
	a := shell(t, leads, `trap "" INT TERM; >"$1"; while :; do sleep 1; done`, ready)
	eventually(t, "ready", func() bool { return exists(ready) })
	var r recorder
	mustEnd(t, r.killer(50*time.Millisecond), Job{Owner: a.id(), FileUID: os.Getuid()})
	if r.to(a.pid()) != "CONT INT TERM KILL" {
		t.Errorf("sent %v", r.sent)
	}
}

func init() {
	// Appends "PID SIGNAL" for each signal it gets, and starts more of its kind.
	roles["diary"] = func(args []string) int {
		got := make(chan os.Signal, 16)
		signal.Notify(got, unix.SIGCONT, unix.SIGINT, unix.SIGTERM)
		if depth, _ := strconv.Atoi(args[1]); depth > 0 {
			for range 2 {
				cmd := exec.Command("/proc/self/exe", args[0], strconv.Itoa(depth-1))
				cmd.Start()
			}
		}
		note := func(what string) {
			f, err := os.OpenFile(args[0], os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666)
			if err != nil {
				os.Exit(1)
			}
			defer f.Close()
			fmt.Fprintln(f, os.Getpid(), what)
		}
		note("ready")
		for {
			note(unix.SignalName((<-got).(syscall.Signal)))
		}
	}
}

func diary(path string) []string {
	text, _ := os.ReadFile(path)
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func TestEachProcessGetsEachSignalOnce(t *testing.T) {
	path := file(t, "diary")
	a := play(t, leads, "diary", path, "2")
	eventually(t, "all 7 are ready", func() bool { return len(diary(path)) == 7 })
	var r recorder
	mustEnd(t, r.killer(500*time.Millisecond), Job{Owner: a.id(), FileUID: os.Getuid()})
	counts := map[string]int{}
	for _, line := range diary(path) {
		counts[line]++
	}
	for line, n := range counts {
		if n != 1 {
			t.Errorf("%d times %s", n, line)
		}
	}
	if len(counts) != 7*4 {
		t.Errorf("%d lines, want ready CONT INT TERM from each of 7", len(counts))
	}
	if len(r.sent) != 7*4 {
		t.Errorf("%d signals observed, want 4 for each of 7: %v", len(r.sent), r.sent)
	}
	if !strings.HasPrefix(r.sent[0], strconv.Itoa(a.pid())+" ") {
		t.Errorf("the owner was not the first: %v", r.sent)
	}
}

func TestGrandchildInItsOwnSessionIsEnded(t *testing.T) {
	path := file(t, "pid")
	a := shell(t, leads, `sh -c 'setsid sh -c "echo \$\$ >\"\$0\"; exec sleep 100" "$0" & wait' "$1"; :`, path)
	pid := pidIn(t, path)
	mustEnd(t, Killer{Pause: brief}, Job{Owner: a.id(), FileUID: os.Getuid()})
	if !gone(pid) {
		t.Error("it lives")
	}
}

func TestOrphanInTheOwnersGroupIsEnded(t *testing.T) {
	path := file(t, "pid")
	a := shell(t, leads, `(sleep 100 & echo $! >"$1"); sleep 100; :`, path)
	pid := pidIn(t, path)
	mustEnd(t, Killer{Pause: brief}, Job{Owner: a.id(), FileUID: os.Getuid()})
	if !gone(pid) {
		t.Error("it lives")
	}
}

func TestStrangersInASharedGroupAreLeftAlone(t *testing.T) {
	leader := sleeper(t, leads) // as run-parts or make lead one group for many scripts
	owner := sleeper(t, syscall.SysProcAttr{Setpgid: true, Pgid: leader.pid()})
	other := sleeper(t, syscall.SysProcAttr{Setpgid: true, Pgid: leader.pid()})
	var r recorder
	mustEnd(t, r.killer(patient), Job{Owner: owner.id(), FileUID: os.Getuid()})
	if gone(leader.pid()) || gone(other.pid()) || len(r.sent) != 2 {
		t.Errorf("sent %v", r.sent)
	}
}

func init() {
	roles["joiner"] = func(args []string) int { // joins the group whose number is written to a file
		for end := time.Now().Add(patient); time.Now().Before(end); time.Sleep(time.Millisecond) {
			text, _ := os.ReadFile(args[0])
			if group, err := strconv.Atoi(strings.TrimSuffix(string(text), "\n")); err == nil && strings.HasSuffix(string(text), "\n") {
				if unix.Setpgid(0, group) != nil {
					return 1
				}
				time.Sleep(patient)
			}
		}
		return 1
	}
}

func TestAnOlderProcessInTheGroupIsLeftAlone(t *testing.T) {
	path := file(t, "group")
	older := play(t, leads, "joiner", path)
	start := older.id().Start
	var owner *actor
	eventually(t, "a younger process", func() bool {
		owner = sleeper(t, leads)
		return owner.id().Start > start
	})
	if err := os.WriteFile(path, []byte(strconv.Itoa(owner.pid())+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "joined", func() bool { return older.id().PGID == owner.pid() })
	mustEnd(t, Killer{Pause: patient}, Job{Owner: owner.id(), FileUID: os.Getuid()})
	if gone(older.pid()) {
		t.Error("it was ended")
	}
}

func TestADaemonThatLeftTheJobIsLeftAlone(t *testing.T) {
	path := file(t, "pid")
	a := shell(t, leads, `setsid -f sh -c 'echo $$ >"$0"; exec sleep 100' "$1"; sleep 100; :`, path)
	pid := pidIn(t, path)
	eventually(t, "the daemon is nobody's of the job", func() bool {
		e, err := look(pid)
		if err != nil || e.ppid == a.pid() || e.pgid == a.pid() {
			return false
		}
		parent, err := look(e.ppid) // setsid -f, until it has exited
		return err == nil && parent.ppid != a.pid()
	})
	mustEnd(t, Killer{Pause: patient}, Job{Owner: a.id(), FileUID: os.Getuid()})
	if gone(pid) {
		t.Error("the daemon was ended")
	}
}

func TestTheCommandIsEndedAfterItsOwnerDied(t *testing.T) {
	owner, job := shell(t, leads, "read x"), sleeper(t, leads)
	id, err := Of(owner.pid())
	if err != nil {
		t.Fatal(err)
	}
	owner.wait()
	mustEnd(t, Killer{Pause: patient}, Job{Owner: id, Command: job.id(), FileUID: os.Getuid()})
	if !gone(job.pid()) {
		t.Error("it lives")
	}
}

func TestAncestorIsRefused(t *testing.T) {
	for _, pid := range []int{os.Getpid(), os.Getppid()} {
		id, err := Of(pid)
		if err != nil {
			t.Fatal(err)
		}
		if err := (Killer{}).End(Job{Owner: id, FileUID: -1}); !errors.Is(err, ErrAncestor) {
			t.Errorf("got %v", err)
		}
		if _, err := (Job{Owner: id, FileUID: -1}).Members(); !errors.Is(err, ErrAncestor) {
			t.Errorf("got %v", err)
		}
	}
}

func TestOneIsNeverSignalled(t *testing.T) {
	id, err := Of(1)
	if err != nil {
		need.Skip(t, err)
	}
	if err := (Killer{}).End(Job{Owner: id, FileUID: -1}); err == nil {
		t.Error("no error")
	}
}

func TestWhatCannotBeCheckedIsStuckAndUntouched(t *testing.T) {
	a := sleeper(t, leads)
	for name, change := range map[string]func(*Identity){
		"pid namespace":  func(id *Identity) { id.PIDNS++ },
		"time namespace": func(id *Identity) { id.TimeNS++ },
		"start":          func(id *Identity) { id.Start = 0 },
		"boot":           func(id *Identity) { id.Boot = "" },
	} {
		t.Run(name, func(t *testing.T) {
			id := a.id()
			change(&id)
			mustStick(t, Killer{}.End(Job{Owner: id, FileUID: -1}), ErrUnchecked)
			if gone(a.pid()) {
				t.Error("it was ended")
			}
		})
	}
}

func as(uid uint32) syscall.SysProcAttr {
	return syscall.SysProcAttr{Setpgid: true, Credential: &syscall.Credential{Uid: uid, Gid: uid}}
}

func TestForeignOwnerIsRefused(t *testing.T) {
	need.Root(t)
	a := sleeper(t, as(nobody))
	eventually(t, "nobody's", func() bool { return a.id().UID == nobody })
	var r recorder
	mustStick(t, r.killer(0).End(Job{Owner: a.id(), FileUID: 0}), ErrForeignOwner)
	if gone(a.pid()) || len(r.sent) != 0 {
		t.Errorf("sent %v", r.sent)
	}
	mustEnd(t, r.killer(patient), Job{Owner: a.id(), FileUID: nobody})
}

func TestForeignGroupOfADeadOwnerIsRefused(t *testing.T) {
	need.Root(t)
	leader := shell(t, leads, "read x")
	id, err := Of(leader.pid())
	if err != nil {
		t.Fatal(err)
	}
	member := as(nobody)
	member.Pgid = leader.pid()
	a := sleeper(t, member) // the zombie keeps the group
	eventually(t, "zombie", func() bool { return state(leader.pid()) == "Z" })
	var r recorder
	mustStick(t, r.killer(0).End(Job{Owner: id, FileUID: 0}), ErrForeignOwner)
	if gone(a.pid()) || len(r.sent) != 0 {
		t.Errorf("sent %v", r.sent)
	}
}

func init() {
	roles["host"] = func([]string) int { // its child is another user's
		cmd := exec.Command("sleep", "100")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		if cmd.Run() != nil {
			return 1
		}
		return 0
	}
	roles["killer"] = func(args []string) int { // ends "PID"; prints what it sent and the error
		pid, _ := strconv.Atoi(args[0])
		id, err := Of(pid)
		if err == nil {
			err = Killer{Observe: func(s Signalled) { fmt.Println(s) }}.End(Job{Owner: id, FileUID: -1})
		}
		fmt.Println(err, errors.Is(err, unix.EPERM))
		return 0
	}
}

func TestDescendantsOfAVerifiedOwnerAreEndedWhateverTheirUser(t *testing.T) {
	need.Root(t)
	a := play(t, leads, "host")
	job := Job{Owner: a.id(), FileUID: 0}
	var list []Member
	eventually(t, "two members", func() bool {
		var err error
		list, err = job.Members()
		return err == nil && len(list) == 2
	})
	mustEnd(t, Killer{Pause: patient}, job)
	if !gone(list[1].PID) {
		t.Error("it lives")
	}
}

func TestWhoMayNotBeSignalledMakesItStuckBeforeTheFirstSignal(t *testing.T) {
	need.Root(t)
	a := sleeper(t, leads)
	b := play(t, as(nobody), "killer", strconv.Itoa(a.pid()))
	b.wait()
	want := fmt.Sprintf("process %d (sleep): operation not permitted true\n", a.pid())
	if got := b.out.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMembersAreListedParentsFirst(t *testing.T) {
	a := shell(t, leads, `sh -c "sleep 100; :"; :`)
	job := Job{Owner: a.id(), FileUID: os.Getuid()}
	var list []Member
	eventually(t, "three members", func() bool {
		list, _ = job.Members()
		return len(list) == 3 && list[2].Command == "sleep"
	})
	if list[0].PID != a.pid() || list[1].Parent != a.pid() || list[2].Parent != list[1].PID {
		t.Errorf("%+v", list)
	}
	if err := list[2].Signal(unix.SIGKILL); err != nil {
		t.Error(err)
	}
	stale := list[2]
	stale.Start++
	if err := stale.Signal(unix.SIGKILL); !errors.Is(err, unix.ESRCH) {
		t.Errorf("got %v", err)
	}
}

func TestExitBetweenSnapshotAndSignalIsNoError(t *testing.T) {
	a := shell(t, leads, "read x")
	e, err := look(a.pid())
	if err != nil {
		t.Fatal(err)
	}
	h := newHunt(-1)
	alive := sleeper(t, leads)
	held, _ := look(alive.pid())
	h.adopt(held)
	a.wait()
	if h.adopt(e) {
		t.Error("a process that is gone became a member")
	}
	alive.Process.Kill()
	alive.wait()
	Killer{}.signal(h, 1)
	if err := h.obstacle(); err != nil || len(h.living()) != 0 {
		t.Errorf("%v, %d living", err, len(h.living()))
	}
}

func TestJobsEndWithoutPidfds(t *testing.T) {
	saved := lastPidfd
	defer func() { lastPidfd = saved }()
	lastPidfd = func() int { return -1 }
	a := shell(t, leads, `trap "" INT; sleep 100 & sleep 100 & wait`)
	eventually(t, "three members", func() bool {
		list, _ := Job{Owner: a.id(), FileUID: -1}.Members()
		return len(list) == 3
	})
	var r recorder
	mustEnd(t, r.killer(50*time.Millisecond), Job{Owner: a.id(), FileUID: os.Getuid()})
	if !gone(a.pid()) {
		t.Error("it lives")
	}
}

func init() {
	// Forks its successor and exits, over and over, 8000 times at most; deaf
	// to INT and TERM. Only raw system calls: after a fork this one thread is
	// all there is.
	roles["comet"] = func([]string) int {
		signal.Ignore(unix.SIGINT, unix.SIGTERM)
		for range 8000 {
			pid, _, err := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
			if pid != 0 || err != 0 {
				unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
			}
		}
		return 0
	}
}

// comets is a script that sets two of them off and goes on.
const comets = role + `=comet /proc/$PPID/exe & ` + role + `=comet /proc/$PPID/exe &
trap "" INT TERM; >"$1"; while :; do sleep 1; done`

// mustLeaveNobody: whoever still lives holds the standard output that it
// inherited from a; zombies do not.
func mustLeaveNobody(t *testing.T, a *actor) {
	t.Helper()
	a.wait()
	if errors.Is(a.err, exec.ErrWaitDelay) {
		t.Error("somebody lives on")
	}
}

func TestAJobThatForksFasterThanAScanIsEnded(t *testing.T) {
	a := shell(t, leads, comets, file(t, "ready"))
	eventually(t, "ready", func() bool { return exists(a.Args[4]) })
	id := a.id()
	mustEnd(t, Killer{Pause: brief}, Job{Owner: id, FileUID: os.Getuid()})
	mustLeaveNobody(t, a)
}

func init() {
	// A supervisor in small: subreaper, reaps, forwards INT and TERM to its
	// child, exits with the last of its children. args: script, its argument.
	roles["supervisor"] = func(args []string) int {
		unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
		got := make(chan os.Signal, 16)
		signal.Notify(got, unix.SIGINT, unix.SIGTERM)
		cmd := exec.Command("/bin/sh", "-c", args[0], "sh", args[1])
		cmd.Stdout = os.Stdout
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if cmd.Start() != nil {
			return 1
		}
		go func() {
			for sig := range got {
				cmd.Process.Signal(sig)
			}
		}()
		reap()
		if len(args) > 2 { // it has something left to do
			time.Sleep(300 * time.Millisecond)
		}
		return 0
	}
	// Ends what it has started when told to by a line on standard input; with a
	// third argument not the rest of the group it leads.
	roles["enforcer"] = func(args []string) int {
		unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
		cmd := exec.Command("/bin/sh", "-c", args[0], "sh", args[1])
		cmd.Stdout = os.Stdout
		if cmd.Start() != nil {
			return 1
		}
		done := make(chan struct{})
		go func() { reap(); close(done) }()
		bufio.NewReader(os.Stdin).ReadString('\n')
		group := len(args) == 2
		err := Killer{Pause: brief}.EndDescendants(group)
		left, listErr := Descendants(group)
		fmt.Println(err, len(left), listErr)
		if err == nil {
			<-done
		}
		return 0
	}
}

// reap waits until there are no more children.
func reap() {
	for {
		if _, err := unix.Wait4(-1, nil, 0, nil); err == unix.ECHILD {
			return
		}
	}
}

func TestASupervisorIsSignalledOnlyOnceItsJobIsGone(t *testing.T) {
	path := file(t, "diary")
	script := `trap 'echo INT >>"$1"; exit' INT; >"$1"; while :; do sleep 0.01; done`
	a := play(t, leads, "supervisor", script, path)
	eventually(t, "ready", func() bool { return exists(path) })
	var r recorder
	mustEnd(t, r.killer(patient), Job{Owner: a.id(), FileUID: os.Getuid(), Supervised: true})
	if text, _ := os.ReadFile(path); string(text) != "INT\n" {
		t.Errorf("the job got %q", text)
	}
	if got := r.to(a.pid()); strings.Contains(got, "CONT") || strings.Contains(got, "TERM") {
		t.Errorf("the supervisor got %q", got)
	}
}

// KILL would make the shell above it say "Killed", and cron mail that.
func TestASupervisorIsLeftTimeToExitByItself(t *testing.T) {
	path := file(t, "ready")
	a := play(t, leads, "supervisor", `trap "" INT TERM; >"$1"; while :; do sleep 0.01; done`, path, "slowly")
	eventually(t, "ready", func() bool { return exists(path) })
	var r recorder
	mustEnd(t, r.killer(brief), Job{Owner: a.id(), FileUID: os.Getuid(), Supervised: true})
	if got := r.to(a.pid()); got != "" {
		t.Errorf("the supervisor got %q", got)
	}
}

func TestAStoppedSupervisorIsContinued(t *testing.T) {
	path := file(t, "ready")
	a := play(t, leads, "supervisor", `>"$1"; exec sleep 100`, path)
	eventually(t, "ready", func() bool { return exists(path) })
	unix.Kill(a.pid(), unix.SIGSTOP)
	eventually(t, "stopped", func() bool { return state(a.pid()) == "T" })
	var r recorder
	mustEnd(t, r.killer(patient), Job{Owner: a.id(), FileUID: os.Getuid(), Supervised: true})
	if got := r.to(a.pid()); !strings.HasPrefix(got, "CONT") {
		t.Errorf("the supervisor got %q", got)
	}
}

func TestASupervisedJobThatForksFasterThanAScanIsEnded(t *testing.T) {
	path := file(t, "ready")
	a := play(t, leads, "supervisor", comets, path)
	eventually(t, "ready", func() bool { return exists(path) })
	job := Job{Owner: a.id(), FileUID: os.Getuid(), Supervised: true}
	mustEnd(t, Killer{Pause: brief}, job)
	mustLeaveNobody(t, a)
}

func TestOwnDescendantsAreEndedAndNotOneself(t *testing.T) {
	for name, script := range map[string]string{
		"orphans in other sessions": `setsid -f sleep 100; (setsid sleep 100 &); trap "" INT; >"$1"; while :; do sleep 1; done`,
		"comets":                    comets,
	} {
		t.Run(name, func(t *testing.T) {
			path := file(t, "ready")
			cmd := exec.Command("/proc/self/exe", script, path)
			cmd.Env = append(os.Environ(), role+"=enforcer")
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			a := launch(t, leads, cmd)
			eventually(t, "ready", func() bool { return exists(path) })
			in.Write([]byte("\n"))
			mustLeaveNobody(t, a)
			if got := a.out.String(); got != "<nil> 0 <nil>\n" {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestOtherCommandsOfAPipelineAreLeftAlone(t *testing.T) {
	path := file(t, "ready")
	cmd := exec.Command("/proc/self/exe", `>"$1"; sleep 100`, path, "descendants only")
	cmd.Env = append(os.Environ(), role+"=enforcer")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	a := launch(t, leads, cmd)
	neighbour := sleeper(t, syscall.SysProcAttr{Setpgid: true, Pgid: a.pid()})
	eventually(t, "ready", func() bool { return exists(path) })
	in.Write([]byte("\n"))
	eventually(t, "the leader is done", func() bool { return !PIDLives(a.pid()) })
	if got := a.out.String(); got != "<nil> 0 <nil>\n" {
		t.Errorf("got %q", got)
	}
	if !PIDLives(neighbour.pid()) {
		t.Error("the neighbour was ended")
	}
}

func TestKinship(t *testing.T) {
	k := kin{
		roots:  map[key]bool{{10, 50}: true},
		leader: key{10, 50},
		bands:  []band{{key: key{10, 50}}},
	}
	list := []entry{
		{pid: 1, start: 0},
		{pid: 10, ppid: 1, pgid: 10, start: 50},
		{pid: 11, ppid: 10, pgid: 10, start: 51},
		{pid: 12, ppid: 11, pgid: 12, start: 52},             // a grandchild in its own group
		{pid: 13, ppid: 12, pgid: 13, start: 51},             // older than its parent: the pid 12 of then was another
		{pid: 14, ppid: 1, pgid: 10, start: 60},              // an orphan in the group
		{pid: 15, ppid: 14, pgid: 15, start: 60},             // and its child
		{pid: 16, ppid: 1, pgid: 10, start: 49},              // in the group before the owner was
		{pid: 17, ppid: 10, pgid: 10, start: 55, dead: true}, // a zombie
		{pid: 90, ppid: 11, pgid: 10, start: 60},             // a newcomer inside the job, whom only scan knows
		{pid: 20, ppid: 1, pgid: 20, start: 70},              // a member once, reparented since
		{pid: 21, ppid: 20, pgid: 20, start: 71},
		{pid: 30, ppid: 1, pgid: 30, start: 70},
	}
	var got []int
	for _, e := range k.find(list, func(k key) bool { return k == key{20, 70} }) {
		got = append(got, e.pid)
	}
	if want := []int{10, 11, 12, 90, 14, 20, 15, 21}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if k.whole(list) {
		t.Error("one signal to the group would reach a stranger")
	}
	if !k.whole([]entry{{pid: 14, pgid: 10, start: 60}}) {
		t.Error("a group of members only is not whole")
	}
	if k.drop([]entry{{pid: 10, start: 99}}); len(k.bands) != 0 {
		t.Error("another start is not taken for another leader")
	}
}

func BenchmarkEndOfOne(b *testing.B) { benchmarkEnd(b, "exec sleep 100", 1) }

// What a shell starts with & ignores INT: the pause after it is included.
func BenchmarkEndOfSixty(b *testing.B) {
	benchmarkEnd(b, "for i in 1 2 3 4 5 6 7 8 9 10; do sh -c 'sleep 100 & sleep 100 & sleep 100 & sleep 100 & sleep 100; :' & done; sleep 100; :", 62)
}

func benchmarkEnd(b *testing.B, script string, size int) {
	for b.Loop() {
		b.StopTimer()
		cmd := exec.Command("/bin/sh", "-c", script)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			if cmd.ProcessState == nil { // else its group's number may be another's
				unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
			}
		})
		id, err := Of(cmd.Process.Pid)
		if err != nil {
			b.Fatal(err)
		}
		job := Job{Owner: id, FileUID: -1}
		for end := time.Now().Add(patient); ; time.Sleep(10 * time.Millisecond) {
			list, _ := job.Members()
			if len(list) == size && list[len(list)-1].Command == "sleep" {
				break
			}
			if time.Now().After(end) {
				b.Fatal("never complete: ", len(list))
			}
		}
		b.StartTimer()
		if err := (Killer{Pause: 10 * time.Millisecond}).End(job); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		cmd.Wait()
		b.StartTimer()
	}
}
