package killer

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/process"
	"adlock/test/support/actor"
	"adlock/test/support/check"
	"adlock/test/support/must"
)

func TestAProcessThatExitsAtINTGetsNoFurtherSignal(t *testing.T) {
	a := actor.Sleeper(t, actor.Leads)
	var r recorder
	mustEnd(t, r.killer(actor.Patient), process.Job{Owner: idOf(a), FileUID: os.Getuid()})
	if !gone(a.PID()) || r.to(a.PID()) != "CONT INT" {
		t.Errorf("gone %v, sent %v", gone(a.PID()), r.sent)
	}
}

func TestAnEndingStopsOnceEnoughReturnsTrue(t *testing.T) {
	a := deaf(t, actor.Leads)
	var r recorder
	k := r.killer(50 * time.Millisecond)
	k.Enough = func() bool { return r.to(a.PID()) == "CONT INT TERM" }
	mustEnd(t, k, process.Job{Owner: idOf(a), FileUID: os.Getuid()})
	if r.to(a.PID()) != "CONT INT TERM" || gone(a.PID()) {
		t.Errorf("sent %v", r.sent)
	}
}

func TestStrangersInASharedGroupAreLeftAlone(t *testing.T) {
	leader := actor.Sleeper(t, actor.Leads) // run-parts and make lead one group for many scripts
	owner := actor.Sleeper(t, syscall.SysProcAttr{Setpgid: true, Pgid: leader.PID()})
	other := actor.Sleeper(t, syscall.SysProcAttr{Setpgid: true, Pgid: leader.PID()})
	var r recorder
	mustEnd(t, r.killer(actor.Patient), process.Job{Owner: idOf(owner), FileUID: os.Getuid()})
	if gone(leader.PID()) || gone(other.PID()) || len(r.sent) != 2 {
		t.Errorf("sent %v", r.sent)
	}
}

func TestEndingAJobOfAnAncestorIsRefused(t *testing.T) {
	for _, pid := range []int{os.Getpid(), os.Getppid()} {
		id := must.Get(process.Of(pid))(t)
		if err := (Killer{}).End(process.Job{Owner: id, FileUID: -1}); !errors.Is(err, ErrAncestor) {
			t.Errorf("got %v", err)
		}
		if _, err := Members(process.Job{Owner: id, FileUID: -1}); !errors.Is(err, ErrAncestor) {
			t.Errorf("got %v", err)
		}
	}
}

func init() {
	actor.Roles["killer"] = func(args []string) int { // ends "PID"; prints what it sent and the error
		pid, _ := strconv.Atoi(args[0])
		id, err := process.Of(pid)
		if err == nil {
			err = Killer{Observe: func(s Signalled) { fmt.Println(s) }}.End(process.Job{Owner: id, FileUID: -1})
		}
		fmt.Println(err, errors.Is(err, unix.EPERM))
		return 0
	}
}

func TestNoMemberIsSignalledIfOneOfThemMayNotBe(t *testing.T) {
	a, b := actor.Sleeper(t, actor.Leads), actor.Sleeper(t, actor.Leads)
	h := hunted(t, a, b)
	h.membership.Roots[entryOf(a).Key()], h.membership.Roots[entryOf(b).Key()] = true, true
	h.order[1].err = unix.EPERM
	var r recorder
	mustStick(t, r.killer(0).end(h, nil), unix.EPERM)
	if len(r.sent) > 0 || gone(a.PID()) {
		t.Errorf("sent %v", r.sent)
	}
}

func TestAMemberThatExitsBeforeItsSignalIsNoError(t *testing.T) {
	a := actor.Shell(t, actor.Leads, "read x")
	e := must.Get(process.Find(a.PID()))(t)
	h := newTree(-1)
	alive := actor.Sleeper(t, actor.Leads)
	held, _ := process.Find(alive.PID())
	h.adopt(held)
	a.Await()
	check.Equal(t, "a process that is gone became a member", h.adopt(e), false)
	alive.Kill()
	Killer{}.signal(h, 1)
	if err := h.obstacle(); err != nil || len(h.living()) != 0 {
		t.Errorf("%v, %d living", err, len(h.living()))
	}
}

// With a limit of 18 no descriptor is left for a pidfd: three are open, and 16 are kept spare.
func TestAJobIsEndedEvenWithoutPidfds(t *testing.T) {
	a := actor.Shell(t, actor.Leads, `trap "" INT; sleep 100 & sleep 100 & wait`)
	actor.Eventually(t, "three members", func() bool {
		list, _ := Members(process.Job{Owner: idOf(a), FileUID: -1})
		return len(list) == 3
	})
	b := actor.Shell(t, actor.Leads, "ulimit -n 18; "+actor.Role+`=killer exec "$1" "$2"`, os.Args[0], strconv.Itoa(a.PID()))
	if got := b.Said(); !strings.HasSuffix(got, "<nil> false\n") || !gone(a.PID()) {
		t.Errorf("gone %v, %q", gone(a.PID()), got)
	}
}

func init() {
	// It forks its successor and exits, up to 8000 times, and ignores INT and TERM. It uses only
	// raw system calls, as a forked child has only this one thread.
	actor.Roles["comet"] = func([]string) int {
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

// comets is a script that starts two comets and goes on.
const comets = actor.Role + `=comet /proc/$PPID/exe & ` + actor.Role + `=comet /proc/$PPID/exe &
trap "" INT TERM; >"$1"; while :; do sleep 1; done`

// mustLeaveNone fails if a living process holds the standard output inherited from a; zombies do not hold it.
func mustLeaveNone(t *testing.T, a *actor.Actor) {
	t.Helper()
	check.Equal(t, "the supervisor is alone", a.Alone(), true)
}

func init() {
	// It is a small supervisor: it is a subreaper, forwards INT and TERM to its child, and exits once it has reaped
	// all its children. Its arguments are a script and the script's argument; a third one delays its exit.
	actor.Roles["supervisor"] = func(args []string) int {
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
		if len(args) > 2 { // it still has work to do
			time.Sleep(actor.Brief)
		}
		return 0
	}
	// It ends its descendants when it reads a line on standard input. Unless there is a third
	// argument, it also ends the rest of the group that it leads.
	actor.Roles["enforcer"] = func(args []string) int {
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
		err := Killer{Pause: actor.Brief}.EndDescendants(group)
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

// supervised starts a supervisor of a script, which makes its file $1 once it is ready.
func supervised(t *testing.T, script string, more ...string) (a *actor.Actor, job process.Job, file string) {
	t.Helper()
	file = actor.File(t, "ready")
	a = actor.Play(t, actor.Leads, "supervisor", append([]string{script, file}, more...)...)
	actor.Eventually(t, "ready", func() bool { return actor.Exists(file) })
	return a, process.Job{Owner: idOf(a), FileUID: os.Getuid(), Supervised: true}, file
}

func TestASupervisorGetsNoTERMIfItsJobEndsAtINT(t *testing.T) {
	a, job, path := supervised(t, `trap 'echo INT >>"$1"; exit' INT; >"$1"; while :; do sleep 0.01; done`)
	var r recorder
	mustEnd(t, r.killer(actor.Patient), job)
	if text, _ := os.ReadFile(path); string(text) != "INT\n" {
		t.Errorf("the job got %q", text)
	}
	if got := r.to(a.PID()); strings.Contains(got, "CONT") || strings.Contains(got, "TERM") {
		t.Errorf("the supervisor got %q", got)
	}
}

// If KILL ended the supervisor, its parent shell would print "Killed", and cron would mail that.
func TestASupervisorGetsTimeToExitByItself(t *testing.T) {
	a, job, _ := supervised(t, `trap "" INT TERM; >"$1"; while :; do sleep 0.01; done`, "slowly")
	var r recorder
	mustEnd(t, r.killer(actor.Brief), job)
	check.Equal(t, "the supervisor got", r.to(a.PID()), "")
}

func TestAStoppedSupervisorIsContinued(t *testing.T) {
	a, job, _ := supervised(t, `>"$1"; exec sleep 100`)
	a.Stop()
	var r recorder
	mustEnd(t, r.killer(actor.Patient), job)
	if got := r.to(a.PID()); !strings.HasPrefix(got, "CONT") {
		t.Errorf("the supervisor got %q", got)
	}
}

// enforcer starts an enforcer of a script, which makes its file $1 once it is ready. endIt lets it end its descendants.
func enforcer(t *testing.T, script string, more ...string) (a *actor.Actor, endIt func()) {
	t.Helper()
	path := actor.File(t, "ready")
	cmd := exec.Command("/proc/self/exe", append([]string{script, path}, more...)...)
	cmd.Env = append(os.Environ(), actor.Role+"=enforcer")
	in := must.Get(cmd.StdinPipe())(t)
	a = actor.Launch(t, actor.Leads, cmd)
	return a, func() {
		actor.Eventually(t, "ready", func() bool { return actor.Exists(path) })
		in.Write([]byte("\n"))
	}
}

func TestEndDescendantsEndsAllButTheCallingProcess(t *testing.T) {
	for name, script := range map[string]string{
		"orphans in other sessions":    `setsid -f sleep 100; (setsid sleep 100 &); trap "" INT; >"$1"; while :; do sleep 1; done`,
		"processes that fork and exit": comets,
	} {
		t.Run(name, func(t *testing.T) {
			a, endIt := enforcer(t, script)
			endIt()
			mustLeaveNone(t, a)
			check.Equal(t, "it said", a.Out.String(), "<nil> 0 <nil>\n")
		})
	}
}

func TestTheCallersGroupIsEndedOnlyOnRequest(t *testing.T) {
	for _, more := range [][]string{{"descendants only"}, nil} {
		a, endIt := enforcer(t, `>"$1"; sleep 100`, more...)
		neighbour := actor.Sleeper(t, syscall.SysProcAttr{Setpgid: true, Pgid: a.PID()})
		endIt()
		check.Equal(t, "it said", a.Said(), "<nil> 0 <nil>\n")
		check.Equal(t, "the neighbour lives", process.PIDLives(neighbour.PID()), more != nil)
	}
}
