package supervise

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/lib/fault"
	"adlock/lib/process"
	"adlock/test/support/helper"
	"adlock/test/support/must"
)

// listening starts a supervisor whose job writes down its signals, and so does the job's child. ready
// may change what stands around the supervisor.
func listening(t *testing.T, ready func(*stage)) (st *stage, rep report, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "parent")
	st = rehearse(t, setup{Role: "listener", Args: []string{os.Args[0], "parent", file}})
	ready(st)
	rep = st.begin()
	heard(t, file, 1)
	heard(t, file+".child", 1)
	return st, rep, file
}

// listensNoMore lets a listening job end.
func (st *stage) listensNoMore() {
	st.t.Helper()
	st.stdin.Close()
	st.wantEnd(7)
}

// heard returns a listener's output, once it has that many lines.
func heard(t *testing.T, file string, lines int) []string {
	t.Helper()
	var got []string
	await(t, strconv.Itoa(lines)+" lines in "+file, func() bool {
		text, _ := os.ReadFile(file)
		got = strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		return strings.HasSuffix(string(text), "\n") && len(got) >= lines
	})
	return got
}

// wantHeard wants a listener to have heard these signals.
func wantHeard(t *testing.T, file, want string) {
	t.Helper()
	if got := strings.Join(heard(t, file, strings.Count(want, ",")+2)[1:], ","); got != want {
		t.Errorf("%s heard %s, want %s", filepath.Base(file), got, want)
	}
}

func TestEachSignalReachesTheCommandOrTheWholeJobOnce(t *testing.T) {
	st, rep, file := listening(t, asItIs)
	for i, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGCONT} {
		signalTo(t, rep.PID, sig)
		heard(t, file, i+2)
		heard(t, file+".child", max(1, i-1)) // the first three signals go only to the command
	}
	st.stdin.Close()
	rep = st.wantEnd(7)
	wantHeard(t, file, "hangup,user defined signal 1,user defined signal 2,interrupt,terminated,quit,continued")
	wantHeard(t, file+".child", "interrupt,terminated,quit,continued")
	got := strings.Join(rep.Signals, " ")
	if got != "HUP USR1 USR2 INT INT TERM TERM QUIT QUIT CONT CONT" || !rep.Result.Ended {
		t.Errorf("observed %s, %+v", got, rep.Result)
	}
}

// hasChild reports whether a child of pid runs the command. A copy of dash that has not called exec
// yet does not count, because it would lose a signal.
func hasChild(pid int, command string) bool {
	id := strconv.Itoa(pid)
	children, _ := os.ReadFile("/proc/" + id + "/task/" + id + "/children")
	for _, child := range strings.Fields(string(children)) {
		if child, _ := strconv.Atoi(child); called(child) == command {
			return true
		}
	}
	return false
}

// called is the name of the program that a process runs.
func called(pid int) string {
	name, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm") // an error: the process is gone
	return strings.TrimSuffix(string(name), "\n")
}

func TestProcessesThatIgnoreTERMAreEnded(t *testing.T) {
	dir := t.TempDir()
	st := rehearse(t, setup{Pause: 100 * time.Millisecond, Args: sh(dir, `trap '' TERM
		setsid sleep 300 & echo $! >"$1/left"
		trap - TERM; echo $$ >"$1/ready"; sleep 300`)})
	rep := st.begin()
	left := pidIn(t, filepath.Join(dir, "left"))
	pidIn(t, filepath.Join(dir, "ready"))
	signalTo(t, rep.PID, syscall.SIGTERM)
	if rep := st.wantEnd(143); !rep.Result.Ended {
		t.Errorf("%+v", rep.Result)
	}
	mustBeGone(t, left)
}

func TestProcessesMayCleanUpAfterTERMBeforeKILL(t *testing.T) {
	dir := t.TempDir()
	st := rehearse(t, setup{Pause: patience, Args: sh(dir, `
		sh -c 'trap "sleep 0.2; echo done >\"$1/tidy\"; exit" TERM; echo $$ >"$1/ready"; while :; do sleep 300 & wait; done' sh "$1" &
		wait`)})
	rep := st.begin()
	child := pidIn(t, filepath.Join(dir, "ready"))
	await(t, "what the child waits for", func() bool { return hasChild(child, "sleep") })
	signalTo(t, rep.PID, syscall.SIGTERM)
	_, rep = st.end()
	if !exists(filepath.Join(dir, "tidy")) || slices.Contains(rep.Signals, "KILL") {
		t.Errorf("the child was ended before it had tidied up: signals %v", rep.Signals)
	}
}

func TestAnIgnoredHangupStaysIgnored(t *testing.T) {
	st := rehearse(t, setup{Args: sh("", `kill -HUP $$; kill -HUP $PPID; exit 5`)})
	st.cmd.Args[2] = `trap '' HUP; "$@"; exit $?`
	status, rep := st.play()
	if status != 5 || rep.Result.Ended || len(rep.Signals) != 0 {
		t.Errorf("status %d, %+v, signals %v", status, rep.Result, rep.Signals)
	}
}

func TestStopAndContinueReachTheWholeJob(t *testing.T) {
	dir := t.TempDir()
	st := rehearse(t, setup{Args: sh(dir, `sleep 300 & echo $! >"$1/child"; wait`)})
	rep := st.begin()
	child := pidIn(t, filepath.Join(dir, "child"))
	all := []int{parentOf(t, child), child}
	are := func(letters string) func() bool {
		return func() bool {
			return !slices.ContainsFunc(all, func(pid int) bool { return !strings.Contains(letters, string(state(pid))) })
		}
	}
	st.stop(rep)
	await(t, "all to be stopped", are("T"))
	if state(rep.PID) == 'T' {
		t.Error("the supervisor stands still too, and cannot see to its job")
	}
	signalTo(t, rep.PID, syscall.SIGCONT)
	await(t, "all to run again", are("RSD"))
	signalTo(t, rep.PID, syscall.SIGTERM)
	st.wantEnd(143)
	mustBeGone(t, all...)
}

// stop stops the job, once the supervisor listens.
func (st *stage) stop(rep report) {
	st.t.Helper()
	await(st.t, "it listens", func() bool { return helper.Listens(rep.PID, syscall.SIGTSTP) })
	signalTo(st.t, rep.PID, syscall.SIGTSTP)
}

func TestACONTSoonAfterATSTPAlwaysContinuesTheJob(t *testing.T) {
	distances := make([]time.Duration, 30) // thirty times 0
	for d := time.Duration(0); d <= 300*time.Millisecond; d += 20 * time.Millisecond {
		distances = append(distances, d)
	}
	for d := 90 * time.Millisecond; d <= 110*time.Millisecond; d += time.Millisecond / 2 {
		distances = append(distances, d)
	}
	const supervisors = 6
	for first := range supervisors {
		t.Run(strconv.Itoa(first), func(t *testing.T) {
			t.Parallel()
			st, rep, file := listening(t, asItIs)
			await(t, "it listens", func() bool { return helper.Listens(rep.PID, syscall.SIGTSTP) })
			pairs := 0
			for i := first; i < len(distances); i += supervisors {
				time.Sleep(outdated) // or this TSTP would count as older than the last CONT
				signalTo(t, rep.PID, syscall.SIGTSTP)
				time.Sleep(distances[i])
				signalTo(t, rep.PID, syscall.SIGCONT)
				signalTo(t, rep.PID, syscall.SIGUSR1)
				pairs++
				awaitSignal(t, file, "user defined signal 1", pairs)
			}
			st.listensNoMore()
		})
	}
}

// awaitSignal waits until a listener has heard a signal that often.
func awaitSignal(t *testing.T, file, name string, times int) {
	t.Helper()
	await(t, name, func() bool {
		text, _ := os.ReadFile(file)
		return strings.Count(string(text), name) >= times
	})
}

func TestNoSignalIsLostAmongManyOthers(t *testing.T) {
	st, rep, file := listening(t, asItIs)
	await(t, "it listens", func() bool { return helper.Listens(rep.PID, syscall.SIGTSTP) }) // and to CONT
	storm, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for {
			select {
			case <-storm:
				return
			default:
				syscall.Kill(rep.PID, syscall.SIGUSR1)
			}
		}
	}()
	job := process.Children(rep.PID)[0]
	signals := []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR2}
	for round := range 3 {
		await(t, "the job to be stopped", func() bool {
			stopped := state(job) == 'T'
			if !stopped {
				signalTo(t, rep.PID, syscall.SIGTSTP) // repeated: one soon after a CONT counts as older
			}
			return stopped
		})
		for _, sig := range signals {
			signalTo(t, rep.PID, sig)
		}
		await(t, "all to wait behind the stop", func() bool { return pending(t, job, signals) })
		signalTo(t, rep.PID, syscall.SIGCONT)
		for _, name := range []string{"terminated", "interrupt", "hangup", "quit", "user defined signal 2", "continued"} {
			awaitSignal(t, file, name, round+1)
		}
	}
	close(storm)
	<-over
	st.listensNoMore()
}

// pending reports whether all of these signals are pending for a stopped process.
func pending(t *testing.T, pid int, signals []syscall.Signal) bool {
	t.Helper()
	text, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	_, mask, _ := strings.Cut(string(text), "ShdPnd:\t")
	mask, _, _ = strings.Cut(mask, "\n")
	waits := must.Get(strconv.ParseUint(mask, 16, 64))(t)
	return !slices.ContainsFunc(signals, func(sig syscall.Signal) bool { return waits&(1<<(sig-1)) == 0 })
}

func TestAStoppedJobIsEndedAtItsLimit(t *testing.T) {
	dir, s := t.TempDir(), enforced(t)
	s.Args = sh(dir, `echo $$ >"$1/job"; exec sleep 300`)
	st := rehearse(t, s)
	rep := st.begin()
	job := pidIn(t, filepath.Join(dir, "job"))
	st.stop(rep)
	await(t, "the job is stopped", func() bool { return state(job) == 'T' })
	st.expire()
	st.wantEnd(fault.StatusExpired)
	mustBeGone(t, job)
}
