package cli

import (
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/need"
	"adlock/test/support/terminal"
)

var shells = [][]string{
	{"dash"}, {"bash"}, {"bash", "--posix"}, {"busybox", "ash"}, {"mksh"}, {"ksh93"}, {"zsh", "--emulate", "sh"}, {"yash"},
}

// From the status of its foreground command, a shell concludes whether Ctrl-C ends the script
// too. JOB stands for nothing, or for `adlock run`.
func TestCtrlCEndsAScriptAlikeWithAndWithoutRun(t *testing.T) {
	sleep, err := exec.LookPath("sleep") // some shells have a sleep of their own
	must(t, err)
	for _, shell := range shells {
		t.Run(strings.Join(shell, " "), func(t *testing.T) {
			need.Tools(t, shell[0])
			s := newStage(t)
			for claim, script := range map[string]string{
				"a job that dies of it":         "JOB " + sleep + " 600; echo on",
				"a loop":                        "while :; do JOB " + sleep + " 600; done; echo on",
				"a job that makes it a status":  `JOB sh -c 'trap "exit 130" INT; sleep 600; :'; echo on $?`,
				"a job that means it otherwise": `JOB sh -c 'trap : INT; sleep 600; :'; echo on $?`,
			} {
				bare := s.interrupted(shell, strings.ReplaceAll(script, "JOB", ""))
				for _, options := range []string{"", "--quiet-ok"} {
					locked := s.interrupted(shell, strings.ReplaceAll(script, "JOB", helper.Binary(t)+" run --program job --name a "+options+" --"))
					check.Equal(t, claim, locked, bare)
				}
			}
		})
	}
}

type fate struct {
	signal syscall.Signal // 0: it exited
	status int
	shown  string
}

// interrupted has a shell run a script at a terminal, and types Ctrl-C when the job sleeps and
// every process of the script rests.
func (s *stage) interrupted(shell []string, script string) fate {
	s.Helper()
	c := s.command()
	c.Args = append(append([]string{}, shell...), s.in("script", script+"\n"))
	p := terminal.Start(s, 200, c)
	helper.Eventually(s, "a job sleeps: "+script, func() bool {
		if p.Ended() {
			s.Fatalf("%s: it ended: %q", script, p.Shown())
		}
		sleeps := false
		for _, pid := range helper.Session(p.Process.Pid) {
			if !quiet(pid) {
				return false
			}
			sleeps = sleeps || helper.Name(pid) == "sleep"
		}
		return sleeps
	})
	get(p.Keyboard.Write([]byte{3}))(s)
	helper.Eventually(s, "the script ends: "+script, p.Ended)
	return fateOf(p.Cmd, p.Shown())
}

func fateOf(command *exec.Cmd, shown string) fate {
	wait := command.ProcessState.Sys().(syscall.WaitStatus)
	if wait.Signaled() {
		return fate{signal: wait.Signal(), shown: shown}
	}
	return fate{status: wait.ExitStatus(), shown: shown}
}

// ends runs a command to its end, and reads its wait status without a shell between.
func (s *stage) ends(words ...string) fate {
	s.Helper()
	c := s.command()
	command := exec.Command(words[0], words[1:]...)
	command.Dir, command.Env = s.dir, append(need.Clean(), c.Env...)
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	output, err := command.CombinedOutput()
	if command.ProcessState == nil {
		s.Fatal(err)
	}
	return fateOf(command, string(output))
}

var harmless = []syscall.Signal{unix.SIGCHLD, unix.SIGCONT, unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, unix.SIGURG, unix.SIGWINCH}

func TestASupervisorDiesOfTheSignalThatEndedItsJob(t *testing.T) {
	s := newStage(t)
	const last = 64
	for sig := syscall.Signal(1); sig <= last; sig++ {
		if slices.Contains(harmless, sig) {
			continue
		}
		got := s.ends(helper.Binary(t), "run", "--program", "job", "--name", "a", "--", "sh", "-c", "kill -"+itoa(int(sig))+" $$")
		if got != (fate{signal: sig}) || s.held("a") {
			t.Errorf("%d: %+v, held: %v", sig, got, s.held("a"))
		}
	}
}

func TestRunShellAndMkatomicEndLikeTheirJobs(t *testing.T) {
	s := newStage(t)
	adlock := helper.Binary(t)
	for script, want := range map[string]fate{
		"kill -INT $$": {signal: unix.SIGINT}, "echo said >&2; kill -HUP $$": {signal: unix.SIGHUP, shown: "said\n"},
		"exit 130": {status: 130}, "exit 143": {status: 143},
	} {
		for claim, words := range map[string][]string{
			"quiet":                {adlock, "run", "--quiet-ok", "--name", "a", "--", "sh", "-c", script},
			"a shell of a crontab": {adlock, "shell", "-c", script},
			"a run in a run":       {adlock, "run", "--name", "a", adlock, "run", "--name", "b", "--", "sh", "-c", script},
			"mkatomic":             {adlock, "mkatomic", "f", "--", "sh", "-c", script},
		} {
			check.Equal(t, claim+", "+script, s.ends(words...), want)
		}
	}
	helper.Absent(t, s.in("f"))
}

// The job inherits the ignored or blocked signal from the test, and resets it itself.
func TestASupervisorDiesOfItsJobsSignalEvenIfIgnoredOrBlocked(t *testing.T) {
	need.Tools(t, "perl")
	s := newStage(t)
	const back = `use POSIX; $SIG{HUP} = "DEFAULT"; sigprocmask(SIG_SETMASK, POSIX::SigSet->new); kill HUP => $$; sleep 600`
	for claim, set := range map[string]string{
		"ignored": `$SIG{HUP} = "IGNORE"`,
		"blocked": `sigprocmask(SIG_BLOCK, POSIX::SigSet->new(SIGHUP))`,
	} {
		got := s.ends("perl", "-e", "use POSIX; "+set+"; exec @ARGV", helper.Binary(t), "run", "--name", "a", "--", "perl", "-e", back)
		check.Equal(t, claim, got, fate{signal: unix.SIGHUP})
	}
}

// In a pid namespace, as in a container, no signal from inside ends the first process.
func TestProcess1OfAPidNamespaceExitsWith128PlusTheSignal(t *testing.T) {
	need.Namespaces(t, "--user", "--map-root-user", "--pid", "--fork")
	s := newStage(t)
	for _, sig := range []syscall.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGKILL, unix.SIGQUIT, unix.SIGUSR1} {
		got := s.ends("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc",
			helper.Binary(t), "run", "--name", "a", "--", "sh", "-c", "kill -"+itoa(int(sig))+" $$")
		check.Equal(t, sig.String(), got, fate{status: 128 + int(sig)})
	}
}

// A core of the supervisor would mislead a person who looks for the job's.
func TestASupervisorWritesNoCore(t *testing.T) {
	s := newStage(t)
	const script = `kill -SEGV $$`
	core := func(words ...string) bool {
		command := exec.Command("sh", append([]string{"-c", `ulimit -c unlimited && exec "$@"`, "sh"}, words...)...)
		command.Dir, command.Env = s.dir, append(need.Clean(), s.command().Env...)
		out, err := command.CombinedOutput()
		if command.ProcessState == nil || command.ProcessState.Sys().(syscall.WaitStatus).Signal() != unix.SIGSEGV {
			t.Fatalf("%q: %v\n%s", words, err, out)
		}
		return command.ProcessState.Sys().(syscall.WaitStatus).CoreDump()
	}
	if !core("sh", "-c", script) {
		need.Skip(t, "no core is written here")
	}
	check.Equal(t, "the supervisor has written a core", core(helper.Binary(t), "run", "--name", "a", "--", "sh", "-c", script), false)
}
