package cli

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/runlog"
	"adlock/lib/sysfile"
	"adlock/test/support/check"
	"adlock/test/support/helper"
)

func TestRunPassesTheJobsStatusAndStreamsThrough(t *testing.T) {
	s := newStage(t)
	c := s.command("run", "--", "sh", "-c", "cat; echo trouble >&2; exit 3")
	c.Stdin = "text"
	c.Run(t).Is(t, 3, "text", "trouble\n")
	for status, script := range map[int]string{0: ":", 1: "exit 1", 75: "exit 75", 255: "exit 255", 143: "kill $$", 137: "kill -9 $$"} {
		s.adlock("run", "--", "sh", "-c", script).Is(t, status, "…", "")
	}
}

func TestRunEndsItsOptionsAtTheCommandOrAtTwoDashes(t *testing.T) {
	s := newStage(t)
	first, second := s.want(0, "run", "echo", "--dry-run", "--", "-E").Out, s.want(0, "run", "--", "echo", "--").Out
	if first != "--dry-run -- -E\n" || second != "--\n" {
		t.Error(first, second)
	}
}

func TestAnUnnamedOperandIsTheBaseNameAndTheCksum(t *testing.T) {
	s := newStage(t)
	for text, command := range map[string][]string{
		"/bin/true a 'b  c'":         {"/bin/true", "a", "b  c"},
		"/bin/true a b c":            {"/bin/true", "a", "b", "c"},
		"cd " + s.dir + " && true x": {"true", "x"},
	} {
		operand, kept := atom.Unnamed("true", text)
		s.want(0, append([]string{"run"}, command...)...)
		last := s.locks + "/last." + strings.TrimSpace(s.want(0, "name", "true", host, "run", operand).Out)
		wantWords(t, s.read(last), "\ncommand="+strconv.Quote(kept)+"\n")
		if r := s.want(0, append([]string{"run", "--dry-run"}, command...)...); !strings.HasSuffix(r.Out, "\ncommand: "+text+"\n") {
			t.Errorf("%q: %s", command, r.Out)
		}
	}
}

func TestAPasswordIsWrittenOnlyIntoLocks(t *testing.T) {
	s := newStage(t)
	hook := s.in("hook")
	env := []string{"ADLOCK_HOOK_RUNS=1", "ADLOCK_HOOK=env >>" + hook + "; echo . >>" + hook}
	for status, command := range map[int][]string{
		3: {"sh", "-c", "exit 3 # admin:hunter2"}, 127: {"PGPASSWORD=hunter2", "pg_dump"}, 0: {"/bin/true", "-u", "admin:hunter2"},
	} {
		s.adlock(append(slices.Concat(env, []string{"run", "--"}), command...)...).Is(t, status, "…", "…")
	}
	s.adlock("run", "curl -u admin:hunter2")
	helper.Eventually(t, "the hook is told", func() bool { return exists(hook) && strings.Count(s.read(hook), "\n.") >= 5 })
	entries := get(os.ReadDir(s.locks))(t)
	for _, e := range entries {
		if strings.Contains(e.Name(), "hunter2") || !strings.HasPrefix(e.Name(), "last.") && strings.Contains(s.read(s.locks+"/"+e.Name()), "hunter2") {
			t.Errorf("it is in %s", e.Name())
		}
	}
	if told := s.want(0, "metrics").Out + s.read(hook); strings.Contains(told, "hunter2") {
		t.Errorf("metrics and the hook tell\n%s", told)
	}
}

func TestACommandIsShownWithoutItsPassword(t *testing.T) {
	s := newStage(t)
	command := []string{"--", "/bin/false", "--password", "hunter2", "postgres://admin:hunter2@db/x"}
	s.want(1, append([]string{"run"}, command...)...)
	for _, args := range [][]string{{"status"}, {"status", "--json"}, {"status", "--failed"}, append([]string{"run", "--dry-run"}, command...)} {
		if r := s.want(0, args...); strings.Contains(r.Out, "hunter2") || !strings.Contains(r.Out, "/bin/false --password *** postgres://admin:***@db/x") {
			t.Errorf("%q\n%s", args, r.Out)
		}
	}
}

func TestTwoCommandsWithTheSameNameAndChecksumAreAnError(t *testing.T) {
	s := newStage(t)
	s.want(0, "run", "--", "/bin/true", "a")
	entries, err := filepath.Glob(s.locks + "/last.*")
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	text := strings.Replace(s.read(entries[0]), "/bin/true a", "/bin/true b", 1)
	must(t, os.WriteFile(entries[0], []byte(text), 0o600))
	operand, _ := atom.Unnamed("true", "/bin/true a")
	for _, options := range [][]string{{}, {"--dry-run"}} {
		r := s.adlock(slices.Concat([]string{"run"}, options, []string{"--", "/bin/true", "a"})...)
		r.Is(t, 71, "…",
			"…: is the lock of another command with the same name and sum, "+operand+" (to see that command: adlock status)\n")
	}
	s.want(0, "run", "--program", "true", "--operand", operand, "--", "/bin/true", "c") // the name is explicit
}

func TestANameNamesTheLockForAnyCommandAndDirectory(t *testing.T) {
	s := newStage(t)
	mkdir(t, s.in("elsewhere"), 0o755)
	s.in("elsewhere/job", "#!/bin/sh\n")
	lock := "lock.adlock." + host + ".run.nightly"
	holder := s.command("run", "--name", "nightly", "--", "sleep", "600").Start(t)
	helper.Eventually(t, "it is held", func() bool { return exists(s.locks + "/" + lock) })
	for _, words := range [][]string{{"run", "--name=nightly", "true"}, {"ADLOCK_NAME=nightly", "run", "./job", "with", "words"}} {
		c := s.command(words...)
		c.Dir = s.in("elsewhere")
		c.Run(t).Denied(t)
	}
	s.want(0, "run", "--name", "weekly", "true")
	s.want(0, "run", "--operand", "nightly", "true") // only the operand: the program is the command's
	holder.Signal(t, 15)
	holder.Wait(t)
}

func TestReplaceEndsARunningJobAtOnce(t *testing.T) {
	s := newStage(t)
	old := s.hold("a")
	s.replaces(old.PID, job("--replace", "true")...)
	old.Wait(t)
	old = s.hold("a", "--expire-after", "1h")
	s.replaces(old.PID, append([]string{"ADLOCK_REPLACE=1"}, job("--expire-after", "0", "true")...)...)
	old.Wait(t)
	s.hold("a")
	s.want(75, append([]string{"ADLOCK_REPLACE=0"}, job("true")...)...)
}

func TestARelativeLockDirectoryIsNotMade(t *testing.T) {
	s := newStage(t)
	const says = ": locks: no such directory, and a relative one is not made"
	s.refused(73, says, "run", "--store", "locks", "--dry-run", "true")
	s.refused(73, says, "ADLOCK_DIR=locks", "run", "touch", "ran")
	take := []string{"take", "--owner", itoa(os.Getpid()), "--", "locks/lock.p.h.o.x", "p", "h", "o", "x"}
	s.refused(73, says, append([]string{"ADLOCK_DIR=locks"}, take...)...)
	s.wantFiles()
	mkdir(t, s.in("locks"), 0o700)
	s.want(0, "ADLOCK_DIR=locks", "run", "--name", "a", "true")
	check.Equal(t, "a relative one that is there was taken", exists(s.in("locks/last.adlock."+host+".run.a")), true)
}

func TestOnlyAnUnnamedRelativeCommandNeedsAWorkingDirectory(t *testing.T) {
	s := newStage(t)
	const says = "adlock: working directory: was removed, and names the lock of a command without a full path: say --name NAME\n"
	for line, status := range map[string]int{"run true": 69, "run --name n true": 0, "run /bin/true": 0} {
		c := s.command(strings.Fields(line)...)
		c.Dir = t.TempDir()
		c.Args = append([]string{"sh", "-c", `rmdir "$PWD" && exec "$@"`, "sh"}, c.Args...)
		c.Run(t).Is(t, status, "", map[int]string{69: says}[status])
	}
}

func TestADenialIsSilentUnlessVerboseAndItsStatusCanBeChosen(t *testing.T) {
	s := newStage(t)
	owner := s.hold("a")
	s.want(75, job("true")...)
	whose := fmt.Sprintf("; process %d, user %s", owner.PID, sysfile.UserName(os.Geteuid()))
	s.refused(75, whose+", since "+s.modified(s.lockOf("a")).Format(time.DateOnly), job("--verbose", "true")...)
	s.refused(75, whose+"\n", job("--verbose", "--now=7", "true")...)
	s.refused(75, "busy: running for", append([]string{"ADLOCK_VERBOSE=1"}, job("true")...)...)
	s.want(0, job("-E", "0", "true")...)
	s.want(255, job("--exit-denied", "255", "true")...)
	s.want(9, append([]string{"ADLOCK_EXIT_DENIED=9"}, job("true")...)...)
}

// remembered reads the start of the last run from the last lock.
func (s *stage) remembered(name string) time.Time {
	s.Helper()
	found := regexp.MustCompile(`(?m)^started=(.*)$`).FindStringSubmatch(s.read(s.lastOf(name)))
	if found == nil {
		s.Fatal("no start is remembered")
	}
	started := get(time.Parse(time.RFC3339Nano, found[1]))(s)
	return started
}

func TestFromStartCountsFromTheStartOfTheWait(t *testing.T) {
	s := newStage(t)
	const waited = 2 * time.Second
	script := s.in("script", `. "$library"; ADLOCK_WAIT=1h ADLOCK_FROM_START=1; adlock_get run a 0 && adlock_release`)
	library := s.command("ADLOCK_BIN="+helper.Binary(t), "ADLOCK_PROGRAM=job")
	library.Args = []string{"sh", script}
	library.Env = append(library.Env, "library="+filepath.Join(helper.Root(), "sh/adlock.sh"))
	for claim, c := range map[string]helper.Command{"a run": s.command(job("--from-start", "--wait", "1h", "true")...), "a script": library} {
		holder := s.hold("a")
		began := time.Now()
		p := c.Start(t)
		helper.Eventually(t, claim+" waits", func() bool { return slices.ContainsFunc(helper.Session(p.PID), watches) })
		seen := time.Now()
		s.await("a", time.Since(s.modified(s.lockOf("a")))+waited)
		holder.Signal(t, syscall.SIGTERM)
		p.Is(t, 0, "…")
		if at := s.remembered("a"); at.Sub(seen) > waited/2 || began.Sub(at) > time.Second {
			t.Errorf("%s: remembered is a start %v after it was seen to wait, %v after it began",
				claim, at.Sub(seen), at.Sub(began))
		}
	}
}

func TestDryRunPrintsTheVerdictAndChangesNothing(t *testing.T) {
	s := newStage(t)
	completed := time.Now().Add(-time.Hour).Truncate(time.Second)
	later := "--now=" + itoa(int(completed.Unix())+192)
	s.want(0, job("true")...)
	must(t, os.Chtimes(s.lastOf("a"), completed, completed))
	s.hold("b")
	tree := func() string {
		all := get(exec.Command("find", s.locks, "-type", "f", "-printf", "%p %T@ %C@ %s\n").Output())(t)
		return string(all)
	}
	for _, c := range []struct {
		status int
		says   string
		words  []string
	}{
		{0, "free: completed 3m12s ago, IfElapsed is 0", job(later)},
		{3, "too soon", job(later, "--if-elapsed", "15m", "-E", "3")},
		{0, "warning: ExpireAfter 1m is below IfElapsed 2m", job(later, "--if-elapsed", "2m", "--expire-after", "1m")},
		{75, "busy: running for", jobNamed("b")},
		{0, "it would be ended", jobNamed("b", "--replace")},
	} {
		before := tree()
		wantWords(t, s.want(c.status, append(c.words, "--dry-run", "touch", "ran")...).Out, c.says, "\nlock: "+s.lockOf(c.words[4])+"\n")
		if after := tree(); after != before || exists(s.in("ran")) {
			t.Errorf("%q changed\n%s\ninto\n%s", c.words, before, after)
		}
	}
	if r := s.want(0, "ADLOCK_DIR="+s.in("none"), "run", "--dry-run", "true"); !strings.Contains(r.Out, "never completed") || exists(s.in("none")) {
		t.Errorf("without a lock directory: %s", r.Out)
	}
}

func TestQuietOKShowsOnlyTheOutputOfAFailedJob(t *testing.T) {
	s := newStage(t)
	const script = "echo out; echo err >&2; echo out; exit $0"
	if r := s.want(0, "run", "--quiet-ok", "sh", "-c", script, "0"); r.Out != "" {
		t.Error(r.Out)
	}
	// A crontab line may end with >>log: then only standard error is for cron to mail.
	s.adlock("run", "--quiet-ok", "sh", "-c", script, "4").Is(t, 4, "out\nout\n", "err\n")
	// One stream for both: a pipe, a file, cron's mail.
	for _, redirection := range []string{"2>&1", ">log 2>&1", ">log 2>>log"} {
		r := helper.Command{Dir: s.dir, Env: s.command().Env, Args: []string{"sh", "-c", helper.Binary(t) + ` run --quiet-ok sh -c "$1" 4 ` + redirection + `; s=$?; [ ! -e log ] || cat log; exit $s`, "sh", script}}.Run(t)
		r.Is(t, 4, "out\nerr\nout\n", "")
	}
}

func TestARunWaitsItsJitterBeforeItAcquiresTheLock(t *testing.T) {
	s := newStage(t)
	waiting := s.command(job("--jitter", "52w", "true")...).Start(t)
	s.want(0, job("true")...) // a waiter holds no lock
	waiting.Lives(t)
	s.want(0, job("--jitter", "1s", "true")...)
	s.want(0, job("--jitter", "0", "true")...)
}

func TestAnUpgradeDoesNotDisturbARunningJob(t *testing.T) {
	for claim, change := range map[string]func(path, stranger string) error{
		"upgraded": func(path, stranger string) error { return os.Rename(stranger, path) },
		"removed":  func(path, _ string) error { return os.Remove(path) },
	} {
		t.Run(claim, func(t *testing.T) {
			s := newStage(t)
			program := s.in("adlock", s.read(helper.Binary(s)))
			stranger := s.in("stranger", "#!/bin/sh\necho \"$0 $*\" >>"+s.in("strange")+"\n")
			c := s.command(append(job("sh", "-c", "until test -e go; do sleep 0.01; done; exit 3"), s.notes("told"))...)
			c.Args[0] = program
			p := c.Start(t)
			helper.Eventually(t, "the job runs", func() bool { return s.held("a") })
			must(t, change(program, stranger))
			s.in("go", "")
			if status := p.Wait(t); status != 3 || p.Output() != "" || s.held("a") {
				t.Errorf("status %d, held: %v, %s", status, s.held("a"), p.Output())
			}
			if line := s.told("told", 1)[0]; !strings.HasPrefix(line, "fail job.dax.run.a 3 ") {
				t.Errorf("the hook was told %q", line)
			}
			helper.Absent(t, s.in("strange"))
		})
	}
}

const everySecond = "counts from completion: every second start is denied; --from-start (ADLOCK_FROM_START=1) counts from the start"

// asked writes a history in which the atom was asked for regularly, up to now, and ran every
// second time. It completed half a period ago.
func (s *stage) asked(every time.Duration) {
	s.Helper()
	s.want(0, job("true")...)
	s.aged(s.lastOf("a"), every/2)
	for first, err := range runlog.Read(s.locks, host, math.MaxInt64) { // the acquisition of that run
		must(s, err)
		for n := 6; n > 0; n-- {
			e := first
			e.Time = time.Now().Add(-time.Duration(n) * every)
			if n%2 == 0 {
				e.Kind, e.Token, e.Verdict = runlog.Deny, "", "too-soon"
			}
			must(s, (&runlog.Log{Dir: s.locks, Host: host}).Append(e))
		}
		return
	}
}

func TestADryRunAndADenialWarnOfAnIntervalAsLongAsThePeriod(t *testing.T) {
	s := newStage(t)
	s.asked(time.Hour)
	for _, words := range [][]string{{"--dry-run"}, {"--verbose"}} {
		r := s.adlock(job(append(words, "--if-elapsed", "1h", "true")...)...)
		if r.Status != 75 || !strings.Contains(r.Out+r.Err, "too soon: completed 3") || strings.Count(r.Out+r.Err, everySecond) != 1 {
			t.Errorf("%q: %+v", words, r)
		}
	}
	for claim, words := range map[string][]string{
		"it is cured":         {"--verbose", "--from-start", "--if-elapsed", "1h", "true"},
		"it is meant":         {"--verbose", "--if-elapsed", "15h", "true"},
		"no process reads it": {"--if-elapsed", "1h", "true"},
	} {
		if r := s.adlock(job(words...)...); strings.Contains(r.Err, "every second start") {
			t.Errorf("%s: %+v", claim, r)
		}
	}
}
