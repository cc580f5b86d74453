package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/test/support/helper"
	"adlock/test/support/need"

	"golang.org/x/sys/unix"
)

// waiting starts a runner that waits for a held atom. It returns when the runner waits and handles signals.
func (s *stage) waiting(name string) *helper.Process {
	s.Helper()
	p := s.command(jobNamed(name, "--wait", "1h", "touch", "ran")...).Start(s)
	helper.Eventually(s, "it watches the directory", func() bool { return watches(p.PID) })
	helper.Eventually(s, "it listens to signals", func() bool { return listens(p.PID) })
	return p
}

// listens reports whether a runner handles all its signals: USR2 is the last.
func listens(pid int) bool { return helper.Listens(pid, syscall.SIGUSR2) }

func TestASignalEndsARunThatWaits(t *testing.T) {
	s := newStage(t)
	s.hold("a")
	for _, sig := range []syscall.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2} {
		p := s.waiting("a")
		p.Signal(t, sig)
		if by := p.EndedBy(t); by != sig || p.Output() != "" {
			t.Errorf("%v: ended by %d, and it said %q", sig, by, p.Output())
		}
	}
	helper.Absent(t, s.in("ran"))
}

// The runlog shows why a run of last night is missing.
func TestASignalBeforeTheJobBeginsIsInTheRunlog(t *testing.T) {
	s := newStage(t)
	s.hold("held")
	waits, jitters := s.waiting("held"), s.command(job("--jitter", "52w", "touch", "ran")...).Start(t)
	helper.Eventually(s, "it listens to signals", func() bool { return listens(jitters.PID) })
	for name, p := range map[string]*helper.Process{"held": waits, "a": jitters} {
		p.Signal(t, syscall.SIGTERM)
		p.Is(t, 128+int(syscall.SIGTERM), "")
		log := s.want(0, "log", "--event", "cancel", "--atom", name).Out
		if want := "job run " + name + ": pid " + itoa(p.PID) + ", by TERM, waited "; strings.Count(log, "\n") != 1 || !strings.Contains(log, want) || !strings.HasSuffix(log, ", ended before the job began\n") {
			t.Errorf("the log has %q, want %q", log, want)
		}
	}
	if exists(s.in("ran")) || s.kinds("a") != "cancel" {
		t.Errorf("a job ran, or %q", s.kinds("a"))
	}
}

// quiet reports whether a process has no pending signals and none of its threads runs.
func quiet(pid int) bool {
	look := func() (all string) {
		threads, _ := filepath.Glob("/proc/" + itoa(pid) + "/task/*/status")
		for _, thread := range threads {
			text, _ := os.ReadFile(thread)
			all += string(text)
		}
		return all
	}
	before := look() // this includes how often each thread has slept
	asleep := strings.Count(before, "\nState:\tS ")
	none := strings.Repeat("0", 16) + "\n"
	return asleep > 0 && asleep == strings.Count(before, "\nState:") &&
		asleep == strings.Count(before, "\nSigPnd:\t"+none) && asleep == strings.Count(before, "\nShdPnd:\t"+none) && before == look()
}

func TestAProgramEndedByQUITPrintsNoStackTrace(t *testing.T) {
	s := newStage(t)
	s.hold("a")
	for line, program := range map[string]string{
		strings.Join(s.take("a", "--wait", "1h"), " "): "adlock",
		"status --watch": "adlock-report", // adlock, which listens too, becomes adlock-report
	} {
		p := s.command(strings.Fields(line)...).Start(t)
		helper.Eventually(t, line+" listens", func() bool {
			exe, _ := os.Readlink("/proc/" + itoa(p.PID) + "/exe")
			return filepath.Base(exe) == program && helper.Listens(p.PID, syscall.SIGQUIT)
		})
		p.Signal(t, syscall.SIGQUIT)
		if by := p.EndedBy(t); by != syscall.SIGQUIT || strings.Contains(p.Output(), "goroutine") {
			t.Errorf("%s: ended by %d, and it said %q", line, by, p.Output())
		}
	}
}

// The signal comes at instants between the first instruction of run and the job's. (Before run leaves
// QUIT to the kernel, the Go runtime itself prints its trace.) Between lock and job a signal leaves the
// lock of the dead supervisor, which the next newcomer replaces at once.
func TestASignalAtAnyInstantLeavesNoJobAndAFreeAtom(t *testing.T) {
	for sig, begins := range map[syscall.Signal]func(p *helper.Process) bool{
		unix.SIGTERM: func(*helper.Process) bool { return true },
		unix.SIGQUIT: func(p *helper.Process) bool { return helper.Listens(p.PID, unix.SIGQUIT) || p.Ended() },
	} {
		t.Run(sig.String(), func(t *testing.T) { signalsAtInstants(t, sig, begins, need.Sample(200)) })
	}
}

// signalsAtInstants starts adlock, with the words before it, for each round.
func signalsAtInstants(t *testing.T, sig syscall.Signal, begins func(p *helper.Process) bool, rounds int, before ...string) {
	s := newStage(t)
	command := func(words ...string) helper.Command {
		c := s.command(job(words...)...)
		c.Args = append(slices.Clone(before), c.Args...)
		return c
	}
	whole := helper.Patience
	for range 5 {
		began := time.Now()
		if r := command("true").Run(t); r.Status != 0 {
			t.Fatal(r)
		}
		whole = min(whole, time.Since(began))
	}
	for i := range rounds {
		delay := whole * time.Duration(i) / time.Duration(rounds)
		p := command("sleep", "600").Start(t)
		for !begins(p) {
		}
		for began := time.Now(); time.Since(began) < delay; {
		}
		p.Signal(t, sig)
		by, said := p.EndedBy(t), p.Output()
		if before != nil {
			said = p.Said() // strace complains now and then
		}
		if by != sig || said != "" {
			t.Fatalf("after %v: ended by %d, and it said %q", delay, by, said)
		}
		left := slices.DeleteFunc(helper.With("ADLOCK_DIR="+s.locks), func(pid int) bool { return helper.Name(pid) == "strace" })
		if len(left) > 0 {
			t.Fatalf("after %v: of process %d, these are left: %q", delay, p.PID, helper.Described(left))
		}
		s.want(0, job("true")...)
	}
	t.Logf("%d of %d had the lock when the signal came", strings.Count(s.kinds("a"), "acquire")-rounds-5, rounds)
}
