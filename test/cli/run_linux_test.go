package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/run"
	"adlock/lib/runlog"
	"adlock/lib/sysfile"
	"adlock/test/support/helper"
	"adlock/test/support/need"
)

func job(words ...string) []string {
	return jobNamed("a", words...)
}

func jobNamed(name string, words ...string) []string {
	return append([]string{"run", "--program", "job", "--name", name}, words...)
}

func TestRunPassesTheJobsStatusAndStreamsThrough(t *testing.T) {
	s := newStage(t)
	c := s.command("run", "--", "sh", "-c", "cat; echo trouble >&2; exit 3")
	c.Stdin = "text"
	if r := c.Run(t); r.Status != 3 || r.Out != "text" || r.Err != "trouble\n" {
		t.Errorf("%+v", r)
	}
	for status, script := range map[int]string{0: ":", 1: "exit 1", 75: "exit 75", 255: "exit 255", 143: "kill $$", 137: "kill -9 $$"} {
		if r := s.adlock("run", "--", "sh", "-c", script); r.Status != status || r.Err != "" {
			t.Errorf("%s: %+v, want status %d", script, r, status)
		}
	}
}

// A real-time signal has no name. If the runlog had no signal, the job would seem to have exited
// with that status.
func TestTheRunlogHasTheSignalThatEndedTheJob(t *testing.T) {
	s := newStage(t)
	for signal, want := range map[string]string{"TERM": "TERM", "40": "40"} {
		s.adlock("run", "--program", "job", "--name", "ended-by-"+signal, "sh", "-c", "kill -s "+signal+" $$")
		if got := s.endedBy("ended-by-" + signal); got != want {
			t.Errorf("ended by %q, want %q", got, want)
		}
	}
}

// endedBy returns the signal that the release of the operand records.
func (s *stage) endedBy(operand string) (signal string) {
	s.Helper()
	for e, err := range runlog.Read(s.locks, host) {
		if err != nil {
			s.Fatal(err)
		}
		if e.Operand == operand && e.Kind == runlog.Release {
			signal = e.Signal
		}
	}
	return signal
}

func TestRunEndsItsOptionsAtTheCommandOrAtTwoDashes(t *testing.T) {
	s := newStage(t)
	if r := s.want(0, "run", "echo", "--dry-run", "--", "-E"); r.Out != "--dry-run -- -E\n" {
		t.Error(r.Out)
	}
	if r := s.want(0, "run", "--", "echo", "--"); r.Out != "--\n" {
		t.Error(r.Out)
	}
}

func TestAnUnnamedOperandIsTheBaseNameAndTheCksum(t *testing.T) {
	s := newStage(t)
	for text, command := range map[string][]string{
		"/bin/true":                  {"/bin/true"},
		"/bin/true a 'b  c'":         {"/bin/true", "a", "b  c"},
		"/bin/true a b c":            {"/bin/true", "a", "b", "c"},
		"cd " + s.dir + " && true":   {"true"},
		"cd " + s.dir + " && true x": {"true", "x"},
	} {
		operand, kept := atom.Unnamed("true", text)
		s.want(0, append([]string{"run"}, command...)...)
		last := s.locks + "/last." + strings.TrimSpace(s.want(0, "name", "true", host, "run", operand).Out)
		if text := s.read(last); !strings.Contains(text, "\ncommand="+strconv.Quote(kept)+"\n") {
			t.Errorf("%q: %s", command, text)
		}
		if info, err := os.Stat(last); err != nil || info.Mode() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		if r := s.want(0, append([]string{"run", "--dry-run"}, command...)...); !strings.HasSuffix(r.Out, "\ncommand: "+text+"\n") {
			t.Errorf("%q: %s", command, r.Out)
		}
	}
}

func TestAPasswordStandsInTheLocksOnly(t *testing.T) {
	s := newStage(t)
	hook := s.in("hook")
	env := []string{"ADLOCK_HOOK_RUNS=1", "ADLOCK_HOOK=env >>" + hook + "; echo . >>" + hook}
	for status, command := range map[int][]string{
		3: {"sh", "-c", "exit 3 # admin:hunter2"}, 127: {"PGPASSWORD=hunter2", "pg_dump"}, 0: {"/bin/true", "-u", "admin:hunter2"},
	} {
		if r := s.adlock(append(slices.Concat(env, []string{"run", "--"}), command...)...); r.Status != status {
			t.Errorf("%q: %+v", command, r)
		}
	}
	s.adlock("run", "curl -u admin:hunter2")
	helper.Eventually(t, "the hook is told", func() bool { return exists(hook) && strings.Count(s.read(hook), "\n.") >= 5 })
	entries, err := os.ReadDir(s.locks)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.Contains(e.Name(), "hunter2") || !strings.HasPrefix(e.Name(), "last.") && strings.Contains(s.read(s.locks+"/"+e.Name()), "hunter2") {
			t.Errorf("it is in %s", e.Name())
		}
	}
	if r := s.want(0, "metrics"); strings.Contains(r.Out, "hunter2") {
		t.Error(r.Out)
	}
	if strings.Contains(s.read(hook), "hunter2") {
		t.Errorf("the hook is told\n%s", s.read(hook))
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

func TestAnotherCommandUnderOneSumIsAnErrorThatNamesTheSum(t *testing.T) {
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
		if r.Status != 71 || !strings.HasSuffix(r.Err, ": is the lock of another command with the same name and sum, "+operand+" (to see that command: adlock status)\n") {
			t.Errorf("%+v", r)
		}
	}
	s.want(0, "run", "--program", "true", "--operand", operand, "--", "/bin/true", "c") // the name is explicit
}

func TestADryRunWarnsOfAnOverdueOwner(t *testing.T) {
	s := newStage(t)
	p := s.hold("a", "--notice", "1ms")
	says := fmt.Sprintf("\nwarning: overdue: process %d has run for ", p.PID)
	for _, c := range []struct {
		status int
		told   bool
		option string
	}{{75, true, "--verbose"}, {75, false, "--notice=1h"}, {0, false, "--expire-after=0"}} {
		if r := s.want(c.status, job(c.option, "--dry-run", "true")...); strings.Contains(r.Out, says) != c.told {
			t.Errorf("%s: %s", c.option, r.Out)
		}
	}
}

func TestEveryPartOfTheNameCanBeSetOnTheLineAndInTheEnvironment(t *testing.T) {
	s := newStage(t)
	s.want(0, "run", "--program", "p", "--host", "h", "--operator", "o", "--operand", "x", "--", "true")
	s.want(0, "ADLOCK_PROGRAM=P", "ADLOCK_HOST=H", "ADLOCK_OPERATOR=O", "ADLOCK_OPERAND=X", "run", "true")
	s.want(0, "ADLOCK_PROGRAM=P", "run", "--program=q", "--host=h", "--operator=o", "--name=x", "true")
	s.want(0, "ADLOCK_PROGRAM=P", "ADLOCK_OPERATOR=O", "run", "--name", "y", "true")
	for _, name := range []string{"p.h.o.x", "P.H.O.X", "q.h.o.x", "P.dax.O.y"} {
		if !exists(s.locks + "/last." + name) {
			t.Errorf("no last.%s", name)
		}
	}
}

func TestANameNamesTheLockWhateverTheCommandAndTheDirectory(t *testing.T) {
	s := newStage(t)
	mkdir(t, s.in("elsewhere"), 0o755)
	s.in("elsewhere/job", "#!/bin/sh\n")
	lock := "lock.adlock." + host + ".run.nightly"
	holder := s.command("run", "--name", "nightly", "--", "sleep", "600").Start(t)
	helper.Eventually(t, "it is held", func() bool { return exists(s.locks + "/" + lock) })
	for _, words := range [][]string{{"run", "--name=nightly", "true"}, {"ADLOCK_NAME=nightly", "run", "./job", "with", "words"}} {
		c := s.command(words...)
		c.Dir = s.in("elsewhere")
		if r := c.Run(t); r.Status != 75 || r.Out+r.Err != "" {
			t.Errorf("%q beside it: %+v", words, r)
		}
	}
	s.want(0, "run", "--name", "weekly", "true")
	s.want(0, "run", "--operand", "nightly", "true") // only the operand: the program is the command's
	holder.Signal(t, 15)
	holder.Wait(t)
}

func TestADryRunNamesTheLockAndADenialTheAtom(t *testing.T) {
	s := newStage(t)
	lock := "lock.adlock." + host + ".run.nightly"
	if r := s.want(0, "run", "--name", "nightly", "--dry-run", "true"); !strings.HasSuffix(r.Out, "\nlock: "+s.locks+"/"+lock+"\n") {
		t.Errorf("a dry run says %q", r.Out)
	}
	s.want(0, "run", "--name", "nightly", "true")
	s.refused(75, "adlock: run nightly: too soon: ", "run", "--name", "nightly", "--if-elapsed", "1h", "--verbose", "true")
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

func TestALockDirectoryIsNotMadeInTheWorkingDirectory(t *testing.T) {
	s := newStage(t)
	const says = ": locks: no such directory, and a relative one is not made"
	for _, words := range [][]string{
		{"run", "--store", "locks", "touch", "ran"}, {"run", "--store", "locks", "--dry-run", "true"},
		{"ADLOCK_STORE=locks", "run", "touch", "ran"}, {"ADLOCK_DIR=locks", "run", "touch", "ran"},
		{"ADLOCK_DIR=locks", "take", "--owner", itoa(os.Getpid()), "--", "locks/lock.p.h.o.x", "p", "h", "o", "x"},
	} {
		s.refused(73, says, words...)
	}
	if left, _ := os.ReadDir(s.dir); len(left) > 0 {
		t.Errorf("made: %v", left)
	}
	mkdir(t, s.in("locks"), 0o700)
	s.want(0, "ADLOCK_DIR=locks", "run", "--name", "a", "true")
	if !exists(s.in("locks/last.adlock." + host + ".run.a")) {
		t.Error("a relative one that is there was not taken")
	}
}

func TestADenialIsSilentUnlessVerboseAndItsStatusCanBeChosen(t *testing.T) {
	s := newStage(t)
	owner := s.hold("a")
	s.want(75, job("true")...)
	whose := fmt.Sprintf("; process %d, user %s, since %s", owner.PID, sysfile.UserName(os.Geteuid()), s.modified(s.lockOf("a")).Format(time.DateOnly))
	s.refused(75, whose, job("--verbose", "true")...)
	s.refused(75, "busy: running for", append([]string{"ADLOCK_VERBOSE=1"}, job("true")...)...)
	s.want(0, job("-E", "0", "true")...)
	s.want(255, job("--exit-denied", "255", "true")...)
	s.want(9, append([]string{"ADLOCK_EXIT_DENIED=9"}, job("true")...)...)
}

func TestFromStartCountsFromTheStartOfTheLastRun(t *testing.T) {
	s := newStage(t)
	s.want(0, job("--from-start", "true")...)
	s.want(75, job("--if-elapsed", "30m", "--from-start", "true")...)
	// Completed now, but started an hour ago.
	started := regexp.MustCompile(`started=.*`)
	memory := started.ReplaceAllString(s.read(s.lastOf("a")), "started="+time.Now().Add(-time.Hour).UTC().Format(time.RFC3339Nano))
	must(t, os.WriteFile(s.lastOf("a"), []byte(memory), 0o600))
	s.want(75, job("--if-elapsed", "30m", "true")...)
	s.want(0, job("--if-elapsed", "30m", "--from-start", "true")...)
}

// remembered reads the start of the last run from the last lock.
func (s *stage) remembered(name string) time.Time {
	s.Helper()
	found := regexp.MustCompile(`(?m)^started=(.*)$`).FindStringSubmatch(s.read(s.lastOf(name)))
	if found == nil {
		s.Fatal("no start is remembered")
	}
	started, err := time.Parse(time.RFC3339Nano, found[1])
	if err != nil {
		s.Fatal(err)
	}
	return started
}

func TestFromStartCountsFromBeforeTheWait(t *testing.T) {
	s := newStage(t)
	const waited = 2 * time.Second
	holder := s.hold("a")
	runner := s.command(job("--from-start", "--wait", "1h", "true")...).Start(t)
	helper.Eventually(t, "it waits", func() bool { return watches(runner.PID) })
	seen := time.Now()
	s.await("a", time.Since(s.modified(s.lockOf("a")))+waited)
	holder.Signal(t, syscall.SIGTERM)
	if status := runner.Wait(t); status != 0 {
		t.Fatalf("status %d: %s", status, runner.Output())
	}
	if late := s.remembered("a").Sub(seen); late > waited/2 {
		t.Errorf("the start that is remembered is %v after the run was seen to wait", late)
	}
	script := s.in("script", `. "$library"; ADLOCK_WAIT=1h ADLOCK_FROM_START=1; adlock_get run a 0 && adlock_release`)
	holder = s.hold("a")
	c := s.command("ADLOCK_BIN="+helper.Binary(t), "ADLOCK_PROGRAM=job")
	c.Args, c.Env = []string{"sh", script}, append(c.Env, "library="+filepath.Join(helper.Root(), "sh/adlock.sh"))
	began := time.Now()
	runner = c.Start(t)
	helper.Eventually(t, "its helper waits", func() bool {
		children := helper.Children(runner.PID)
		return len(children) == 1 && watches(children[0])
	})
	seen = time.Now()
	s.await("a", time.Since(s.modified(s.lockOf("a")))+waited)
	holder.Signal(t, syscall.SIGTERM)
	if status := runner.Wait(t); status != 0 {
		t.Fatalf("status %d: %s", status, runner.Output())
	}
	if at := s.remembered("a"); at.Sub(seen) > waited/2 || began.Sub(at) > time.Second {
		t.Errorf("the start that is remembered is %v after the script was seen to wait, %v after it began", at.Sub(seen), at.Sub(began))
	}
}

// A jitter may be too short to be recorded; of ten, one is long enough.
func TestFromStartCountsFromBeforeTheJitter(t *testing.T) {
	s := newStage(t)
	for range 10 {
		began := time.Now()
		r := s.want(0, job("--from-start", "--jitter", "2s", "sh", "-c", `cat "$ADLOCK_DIR"/lock.*`)...)
		if asked := regexp.MustCompile(`(?m)^asked=(.*)$`).FindStringSubmatch(r.Out); asked != nil {
			if before, err := time.ParseDuration(asked[1]); err != nil || before > time.Since(began) {
				t.Errorf("asked %v before, %v; all took %v", before, err, time.Since(began))
			}
			return
		}
	}
	t.Error("the lock never tells how long before the run was asked for")
}

func TestRetryFailedDoesNotCountAFailedRun(t *testing.T) {
	s := newStage(t)
	s.want(1, job("--retry-failed", "--if-elapsed", "1h", "false")...)
	s.want(1, job("--retry-failed", "--if-elapsed", "1h", "false")...)
	s.want(0, job("--retry-failed", "--if-elapsed", "1h", "true")...)
	s.want(75, job("--retry-failed", "--if-elapsed", "1h", "true")...)
}

func TestWithoutRetryFailedAFailedRunCounts(t *testing.T) {
	s := newStage(t)
	s.want(1, job("--if-elapsed", "1h", "false")...)
	s.want(75, job("--if-elapsed", "1h", "false")...)
}

func TestARunThatHasDiedHasNotCompleted(t *testing.T) {
	s := newStage(t)
	for _, interval := range []string{"1h", "never"} {
		options := []string{"run", "--program", "job", "--name", interval, "--wait", "30s", "--if-elapsed", interval}
		s.adlock(append(options, "sh", "-c", "kill -KILL $PPID")...)
		s.want(0, append(options, "true")...)
		s.want(75, append(options, "true")...)
	}
}

func TestNowIsTheClockOfBothDecisions(t *testing.T) {
	s := newStage(t)
	s.want(0, job("true")...)
	past, future := itoa(int(time.Now().Unix()-60)), itoa(int(time.Now().Unix()+7200))
	s.want(75, job("--if-elapsed", "1s", "--now", past, "true")...)
	s.want(0, job("--if-elapsed", "1h", "--now", future, "true")...)
	old := s.hold("b")
	s.want(75, "run", "--program", "job", "--name", "b", "--expire-after", "1h", "true")
	s.replaces(old.PID, "run", "--program", "job", "--name", "b", "--expire-after", "1h", "--now", future, "true")
	old.Wait(t)
}

func TestDryRunSaysTheVerdictWithItsFiguresAndTouchesNothing(t *testing.T) {
	s := newStage(t)
	completed := time.Now().Add(-time.Hour).Truncate(time.Second)
	later := "--now=" + itoa(int(completed.Unix())+192)
	dry := func(status int, says string, options ...string) {
		t.Helper()
		before := s.tree()
		r := s.want(status, job(append(options, "--dry-run", "touch", "ran")...)...)
		if !strings.Contains(r.Out, says) || strings.Count(r.Out, "\n") > 3 || !strings.HasSuffix(r.Out, "\nlock: "+s.lockOf("a")+"\n") {
			t.Errorf("%q says %q, want %q", options, r.Out, says)
		}
		if after := s.tree(); after != before || exists(s.in("ran")) {
			t.Errorf("%q changed\n%s\ninto\n%s", options, before, after)
		}
	}
	dry(0, "never completed")
	s.want(0, job("true")...)
	must(t, os.Chtimes(s.lastOf("a"), completed, completed))
	dry(0, "free: completed 3m12s ago, IfElapsed is 0", later)
	dry(75, "too soon: completed 3m12s ago, IfElapsed is 15m; due in 11m48s", later, "--if-elapsed", "15m")
	dry(3, "too soon", later, "--if-elapsed", "15m", "-E", "3")
	dry(0, "warning: ExpireAfter 1m is below IfElapsed 2m", later, "--if-elapsed", "2m", "--expire-after", "1m")
	s.hold("a")
	dry(75, "busy: running for")
	dry(0, "it would be ended", "--expire-after", "0")
	dry(0, "it would be ended", "--replace")
	if r := s.want(0, "ADLOCK_DIR="+s.in("none"), "run", "--dry-run", "true"); !strings.Contains(r.Out, "never completed") || exists(s.in("none")) {
		t.Errorf("without a lock directory: %s", r.Out)
	}
}

// tree lists what the lock directory holds, with the times of last change.
func (s *stage) tree() string {
	s.Helper()
	entries, err := os.ReadDir(s.locks)
	if err != nil {
		s.Fatal(err)
	}
	var text strings.Builder
	for _, e := range entries {
		path := s.locks + "/" + e.Name()
		text.WriteString(e.Name() + " " + s.modified(path).String() + "\n" + s.read(path) + "\n")
	}
	return text.String()
}

func TestQuietOKShowsTheOutputOfAFailedJobOnly(t *testing.T) {
	s := newStage(t)
	const script = "echo out; echo err >&2; echo out; exit $0"
	if r := s.want(0, "run", "--quiet-ok", "sh", "-c", script, "0"); r.Out != "" {
		t.Error(r.Out)
	}
	// A crontab line may end with >>log: then only standard error is for cron to mail.
	if r := s.adlock("run", "--quiet-ok", "sh", "-c", script, "4"); r != (helper.Result{Status: 4, Out: "out\nout\n", Err: "err\n"}) {
		t.Errorf("%+v", r)
	}
	// One stream for both: a pipe, a file, cron's mail.
	for _, redirection := range []string{"2>&1", ">log 2>&1", ">log 2>>log"} {
		r := helper.Command{Dir: s.dir, Env: s.command().Env, Args: []string{"sh", "-c", helper.Binary(t) + ` run --quiet-ok sh -c "$1" 4 ` + redirection + `; s=$?; [ ! -e log ] || cat log; exit $s`, "sh", script}}.Run(t)
		if r != (helper.Result{Status: 4, Out: "out\nerr\nout\n"}) {
			t.Errorf("%s: %+v", redirection, r)
		}
	}
}

func TestJitterWaitsBeforeTheLockIsTaken(t *testing.T) {
	s := newStage(t)
	waiting := s.command(job("--jitter", "52w", "true")...).Start(t)
	s.want(0, job("true")...) // a waiter holds no lock
	if waiting.Ended() {
		t.Error("it did not wait: " + waiting.Output())
	}
	s.want(0, job("--jitter", "1s", "true")...)
	s.want(0, job("--jitter", "0", "true")...)
}

func TestEnforceEndsTheJobAtExpireAfterWithAllItsChildren(t *testing.T) {
	s := newStage(t)
	r := s.command(job("--enforce", "--expire-after", "1s", "sh", "-c",
		`sleep 600 & setsid sleep 601 & echo $!; trap "" TERM; sleep 602; sleep 603`)...).Run(t)
	if r.Status != 124 {
		t.Errorf("status %d, want 124\n%s", r.Status, r.Err)
	}
	if left := helper.With("ADLOCK_DIR=" + s.locks); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if got := s.kinds("a"); !strings.HasPrefix(got, "acquire ") || !strings.Contains(got, "acquire expire signal ") || !strings.HasSuffix(got, "release") {
		t.Errorf("the record tells %q", got)
	}
	s.want(75, job("--if-elapsed", "1h", "true")...) // the run counts as completed
}

func TestWaitTakesTheAtomOnceItIsFreeAndGivesUpAfterItsTime(t *testing.T) {
	s := newStage(t)
	holder := s.hold("a")
	began := time.Now()
	s.want(75, job("--wait", "1s", "true")...)
	if spent := time.Since(began); spent < time.Second {
		t.Errorf("it gave up after %v", spent)
	}
	waiting := s.command(job("--wait", "10m", "true")...).Start(t)
	helper.Eventually(t, "it watches the directory", func() bool { return watches(waiting.PID) })
	holder.Kill(t)
	for _, pid := range helper.With("ADLOCK_DIR=" + s.locks) {
		if pid != waiting.PID {
			end(t, pid) // the job, which holds the atom for its dead supervisor
		}
	}
	if status := waiting.Wait(t); status != 0 {
		t.Errorf("status %d: %s", status, waiting.Output())
	}
}

func TestTooSoonIsWaitedForOnlyWhenAsked(t *testing.T) {
	s := newStage(t)
	s.want(0, job("true")...)
	s.want(75, job("--if-elapsed", "1h", "--wait", "1h", "true")...)
	s.want(75, job("--if-elapsed", "1h", "--wait", "1s", "--wait-elapsed", "true")...)
	s.aged(s.lastOf("a"), time.Hour-2*time.Second)
	s.want(0, job("--if-elapsed", "1h", "--wait", "10m", "--wait-elapsed", "true")...)
}

func TestEveryOptionOfRunHasItsVariableAndItsHelp(t *testing.T) {
	s := newStage(t)
	help := s.want(0, "run", "--help").Out
	for _, o := range run.Options() {
		variable := "ADLOCK_" + strings.ReplaceAll(strings.ToUpper(o.Name), "-", "_")
		if o.Env != variable || o.Help == "" {
			t.Errorf("--%s: variable %q, want %q; help %q", o.Name, o.Env, variable, o.Help)
		}
		if !strings.Contains(help, "--"+o.Name) || !strings.Contains(help, variable) {
			t.Errorf("the help does not tell of --%s and %s", o.Name, variable)
		}
	}
}

func TestARunWhoseLockWasRemovedHasItsJobsStatus(t *testing.T) {
	a := helper.NewAtom(t)
	r := a.Shell(t, `$adlock run --program=p --host=dax --operator=o --operand=x -- sh -c 'rm "$ADLOCK_DIR/lock.p.dax.o.x"; exit 3'`)
	if r.Status != 3 || r.Out != "" || strings.Count(r.Err, "\n") != 1 || !strings.Contains(r.Err, "lost") {
		t.Errorf("%+v", r)
	}
}

// On Linux, closing a watch may take milliseconds, so the job begins before that.
func TestTheWatchOfARunnerThatWaitedIsClosedWhenItsJobHasBegun(t *testing.T) {
	need.Tools(t, "strace")
	s := newStage(t)
	holder := s.hold("a")
	trace := s.in("trace", "")
	c := s.command()
	c.Args = append([]string{"strace", "-f", "--seccomp-bpf", "-qq", "-y", "-o", trace, "-e", "trace=ppoll,close,execve", helper.Binary(t)}, job("--wait", "1h", "/bin/sh", "-c", "until [ -e closed ]; do sleep 0.05; done")...)
	runner := c.Start(t)
	helper.Eventually(t, "it watches the directory", func() bool { return strings.Contains(s.read(trace), "<anon_inode:inotify>, events=") })
	holder.Signal(t, syscall.SIGTERM)
	helper.Eventually(t, "the watch is closed", func() bool { return closing.MatchString(s.read(trace)) })
	s.in("closed", "")
	if status := runner.Wait(t); status != 0 {
		t.Fatalf("status %d: %s", status, runner.Output())
	}
	closedAfter(t, s.read(trace), `execve("/bin/sh"`)
}

// closing matches the call in strace's output that closes a watch.
var closing = regexp.MustCompile(`close\(\d+<anon_inode:inotify>`)

// closedAfter expects the trace to have one watch, which is closed after that call.
func closedAfter(t *testing.T, trace, what string) {
	t.Helper()
	_, after, _ := strings.Cut(trace, what)
	if len(closing.FindAllString(trace, -1)) != 1 || !closing.MatchString(after) {
		t.Errorf("it is not closed, or before %s:\n%s", what, trace)
	}
}

// The Go runtime opens an epoll descriptor for its timers.
func TestASupervisorHasATimerOnlyWhereItIsToEndTheJob(t *testing.T) {
	s := newStage(t)
	for options, want := range map[string]bool{"": false, "--enforce --expire-after 1h": true} {
		p := s.hold("a", strings.Fields(options)...)
		helper.Eventually(t, "it listens to all that it will", func() bool { return helper.Listens(p.PID, syscall.SIGTSTP) })
		if got := hasOpen(p.PID, "eventpoll"); got != want {
			t.Errorf("%q: %t", options, got)
		}
		p.Signal(t, syscall.SIGTERM)
		p.Wait(t)
	}
}
