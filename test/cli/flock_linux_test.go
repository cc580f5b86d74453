package cli

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/need"
	"adlock/test/support/terminal"
)

// flocked starts a process that holds a file in the working directory, as flock(1) does with these
// options, and returns the words that lock it beside an atom.
func (s *stage) flocked(options ...string) (holder *helper.Process, words []string) {
	s.Helper()
	need.Tools(s, "flock")
	args := append(append([]string{"flock"}, options...), s.in("file"), "sleep", "600")
	holder = helper.Command{Args: args, Dir: s.dir}.Start(s)
	childOf(s.T, holder.PID, "sleep")
	return holder, job("--flock", s.in("file"))
}

func (s *stage) letGo(holder *helper.Process) {
	s.Helper()
	for _, pid := range append([]int{holder.PID}, helper.Children(holder.PID)...) {
		end(s.T, pid)
	}
}

// isFree reports whether another process could lock the file exclusively.
func isFree(t *testing.T, path string) bool {
	t.Helper()
	file := get(os.Open(path))(t)
	defer file.Close()
	return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}

func TestTheFlockFileIsLockedWhileTheJobRuns(t *testing.T) {
	s := newStage(t)
	need.Tools(t, "flock")
	for options, want := range map[string]string{"": "1\n1\n", "--shared": "1\n0\n"} {
		const script = "flock -n file true; echo $?; flock -sn file true; echo $?; exit 7"
		r := s.want(7, job(append(strings.Fields(options), "--flock", "file", "sh", "-c", script)...)...)
		if r.Out != want || !isFree(t, s.in("file")) {
			t.Errorf("%q: %+v", options, r)
		}
	}
}

func TestALockedFlockFileDeniesTheRunAndStampsNothing(t *testing.T) {
	s := newStage(t)
	holder, words := s.flocked()
	says := s.in("file") + " is locked by process " + itoa(holder.PID)
	for _, options := range [][]string{nil, {"--shared"}, {"--slots", "2"}, {"--once-per", "1h"}} {
		s.refused(75, "busy: "+says, append(append(words, options...), "--verbose", "true")...)
		s.adlock(append(append(words, options...), "--dry-run", "true")...).Is(t, 75, "…busy: "+says+"…", "…")
	}
	s.want(75, append(words, "true")...)
	if left, _ := filepath.Glob(s.locks + "/[lt][oi]ck.*"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if last := s.modified(s.lastOf("a")); last.Unix() != 0 {
		t.Errorf("the last lock is stamped: %v", last)
	}
	s.letGo(holder)
	s.want(0, append(words, "--if-elapsed", "1h", "--once-per", "1h", "true")...)
}

func TestARunWaitsForTheAtomAndThenForItsFlockFile(t *testing.T) {
	s := newStage(t)
	holder, words := s.flocked()
	owner := s.hold("a")
	waiter := s.command(append(words, "--wait", "10m", "echo", "ran")...).Start(s)
	waits := func(n int) func() bool { return func() bool { return strings.Count(s.kinds("a"), "wait") == n } }
	helper.Eventually(t, "it waits for the atom", waits(1))
	syscall.Kill(owner.PID, syscall.SIGTERM)
	owner.Wait(t)
	helper.Eventually(t, "it waits for the file", func() bool { return flockWaits(waiter.PID) })
	check.Equal(t, "it holds the atom while it waits for the file", s.held("a"), false)
	s.letGo(holder)
	waiter.Is(t, 0, "ran\n")
	check.Equal(t, "the file is free", isFree(t, s.in("file")), true)
}

// flockWaits reports whether a thread of the process blocks in flock(2).
func flockWaits(pid int) bool {
	locks, _ := os.ReadFile("/proc/locks")
	for line := range strings.Lines(string(locks)) {
		if f := strings.Fields(line); len(f) > 5 && f[1] == "->" && f[2] == "FLOCK" && f[5] == itoa(pid) {
			return true
		}
	}
	return false
}

// A waiter that gets the file while another process holds the atom releases the file.
func TestAWaiterDoesNotKeepTheFlockFileWithoutTheAtom(t *testing.T) {
	s := newStage(t)
	holder, words := s.flocked()
	waiter := s.command(append(words, "--wait", "10m", "true")...).Start(s)
	helper.Eventually(t, "it waits for the file", func() bool { return flockWaits(waiter.PID) })
	owner := s.hold("a")
	s.letGo(holder)
	helper.Eventually(t, "the waiter has let the file go", func() bool { return !flockWaits(waiter.PID) && isFree(t, s.in("file")) })
	syscall.Kill(owner.PID, syscall.SIGTERM)
	owner.Wait(t)
	waiter.Is(t, 0, "…")
}

func TestTheJobKeepsTheFlockFileIfItsSupervisorIsKilled(t *testing.T) {
	s := newStage(t)
	p := s.command("run", "--name", "a", "--flock", "file", "sleep", "600").Start(s)
	job := childOf(t, p.PID, "sleep")
	end(t, p.PID)
	check.Equal(t, "the file is free while the job lives", isFree(t, s.in("file")), false)
	s.refused(75, "file is locked", "run", "--name", "b", "--flock", "file", "--verbose", "true")
	end(t, job)
	s.want(0, "run", "--name", "b", "--flock", "file", "true")
}

func TestARunInTheJobThatHoldsTheFlockFileIsDeniedAtOnce(t *testing.T) {
	s := newStage(t)
	s.refused(75, "b: not run: ", job("--flock", "file", helper.Binary(t), "run", "--name", "b", "--flock", "file",
		"--wait", "forever", "true")...)
}

// A job that holds the file by a descriptor of its own cannot wait for itself.
func TestARunThatInheritedTheLockedFlockFileIsDeniedAtOnce(t *testing.T) {
	s := newStage(t)
	need.Tools(t, "flock")
	script := `exec 9<.; flock 9; exec "$0" run --name b --flock . --wait forever true`
	helper.Command{Args: []string{"sh", "-c", script, helper.Binary(t)}, Dir: s.dir,
		Env: []string{"ADLOCK_DIR=" + s.locks}}.Run(t).Refused(t, 75, "b: not run: ")
}

func TestNoOwnerIsEndedWhileAnotherProcessHasTheFlockFile(t *testing.T) {
	s := newStage(t)
	holder, words := s.flocked()
	owner := s.hold("a")
	for _, options := range [][]string{{"--replace"}, {"--replace", "--dry-run"}} {
		s.adlock(append(append(words, options...), "true")...).Is(t, 75, "…", "")
	}
	owner.Lives(t)
	s.letGo(holder)
	s.adlock(append(words, "--replace", "--pause", "50ms", "echo", "ran")...).Is(t, 0, "ran\n", "…")
	owner.Wait(t)
}

func TestAWaiterLocksTheNewFlockFileAfterARename(t *testing.T) {
	s := newStage(t)
	holder, words := s.flocked()
	waiter := s.command(append(words, "--wait", "10m", "sh", "-c", "flock -n file true; echo $?; ls -l /proc/self/fd | grep -c 'file$'")...).Start(s)
	helper.Eventually(t, "it waits for the file", func() bool { return flockWaits(waiter.PID) })
	must(t, os.Rename(s.in("file"), s.in("old")))
	s.letGo(holder)
	waiter.Is(t, 0, "1\n1\n")
}

func TestAWaiterOnATerminalPassesTheNewFlockFileToItsJob(t *testing.T) {
	s := newStage(t)
	holder, words := s.flocked()
	waiter := terminal.Start(t, 80, s.command(append(words, "--wait", "10m", "sh", "-c", "ls -l /proc/self/fd >seen")...))
	helper.Eventually(t, "it waits for the file", func() bool { return flockWaits(waiter.Process.Pid) })
	must(t, os.Rename(s.in("file"), s.in("old")))
	s.letGo(holder)
	waiter.AllShown(t)
	if seen := string(get(os.ReadFile(s.in("seen")))(t)); !strings.Contains(seen, " "+s.in("file")+"\n") || strings.Contains(seen, s.in("old")) {
		t.Error(seen)
	}
}

func TestAFlockFileThatStaysLockedIsReportedAsOverdue(t *testing.T) {
	s := newStage(t)
	holder, words := s.flocked()
	s.want(75, append(words, "true")...)
	s.refused(75, "overdue: "+s.in("file")+" is locked by process "+itoa(holder.PID),
		append(words, "--notice", "0", "true")...)
	s.want(75, append(words, "--notice", "0", "true")...) // once a day
	s.letGo(holder)
	s.want(0, append(words, "true")...)
	_, words = s.flocked()
	s.want(75, append(words, "--notice", "1h", "true")...) // it was free meanwhile
}

func TestFlockRefusesAFileThatItCannotLock(t *testing.T) {
	s := newStage(t)
	must(t, unix.Mkfifo(s.in("pipe"), 0o600))
	for name, to := range map[string]string{"loop": "loop", "dangling": "nowhere"} {
		must(t, os.Symlink(to, s.in(name)))
	}
	for path, status := range map[string]int{"pipe": 64, "/dev/null": 64, "none/file": 73, "loop": 77} {
		for _, more := range [][]string{nil, {"--dry-run"}} {
			s.refused(status, path+": ", append(append([]string{"run", "--name", "a", "--flock", path}, more...), "true")...)
		}
	}
	s.refused(73, "dangling: is a symbolic link to no file", "run", "--name", "a", "--flock", "dangling", "true")
	s.refused(64, "a store keeps its own", "run", "--name", "a", "--flock", "file", "--store", "ftp://u@127.0.0.1:1/x", "true")
	s.refused(64, "ADLOCK_FLOCK: ", "ADLOCK_FLOCK=file", "hold", "a")
	s.want(0, "run", "--name", "a", "--flock", ".", "true")
	s.want(0, "run", "--name", "a", "--flock", "new", "--dry-run", "true")
	helper.Absent(t, s.in("new"))
}
