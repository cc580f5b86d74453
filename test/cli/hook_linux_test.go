package cli

import (
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/lib/runlog"
	"adlock/test/support/check"
	"adlock/test/support/helper"
	"adlock/test/support/need"
)

func example(name string) string { return filepath.Join(helper.Root(), "test/examples", name) }

// told waits until the hook has appended that many lines to the file.
func (s *stage) told(file string, lines int) []string {
	s.Helper()
	return helper.Lines(s, s.in(file), lines)
}

// notes is a hook that appends an event to a file, in one line.
func (s *stage) notes(file string) string {
	return `ADLOCK_HOOK=echo "$ADLOCK_EVENT $ADLOCK_ATOM $ADLOCK_STATUS $ADLOCK_RUN: $ADLOCK_TEXT" >>` + s.in(file)
}

func TestOwnerAndNewcomerReportAForcedEndingAndOneHookRuns(t *testing.T) {
	s := newStage(t)
	victim := s.hold("a", s.notes("told"), "--expire-after", "1s")
	s.await("a", time.Second)
	s.adlock(append(job("--expire-after", "1s", "true"), s.notes("told"), patient)...).Refused(t, 0,
		"adlock: run a: ended process "+itoa(victim.PID)+" by force: it had run for ")
	victim.Wait(t)
	if said := victim.Output(); !oneLine(said) || !strings.Contains(said, "adlock: run a: ended by force by process ") || !strings.Contains(said, ", ExpireAfter is 1s\n") {
		t.Errorf("the victim: %q", said)
	}
	if told := s.told("told", 1); len(told) != 1 || !strings.HasPrefix(told[0], "ended job.dax.run.a ") {
		t.Errorf("told of %q", told)
	}
}

// await waits until a name's lock is that old.
func (s *stage) await(name string, age time.Duration) {
	s.Helper()
	helper.Eventually(s, name+" has expired", func() bool { return time.Since(s.modified(s.lockOf(name))) > age })
}

func TestASupervisorReportsThatItEnforcedTheLimit(t *testing.T) {
	s := newStage(t)
	r := s.adlock(append(job("--enforce", "--expire-after", "1s", "sleep", "600"), s.notes("told"))...)
	text := regexp.MustCompile(`^adlock: (run a: ended by force: it had run for [1-9][0-9]*s, ExpireAfter is 1s)\n$`).FindStringSubmatch(r.Err)
	if r.Status != 124 || text == nil {
		t.Fatalf("%+v", r)
	}
	if line := s.told("told", 1)[0]; !strings.HasPrefix(line, "fail job.dax.run.a 124 ") || !strings.HasSuffix(line, ": "+text[1]) {
		t.Errorf("told of %q", line)
	}
}

func TestABrokenHookDoesNotChangeTheRun(t *testing.T) {
	for name, hook := range map[string]string{"hangs": "sleep 600", "fails": "exit 1", "is missing": "/nosuch/hook", "cannot be read": "if"} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			r := s.adlock(job("--hook", hook, "--hook-runs", "--", "sh", "-c", "echo out; echo err >&2; exit 3")...)
			if r.Status != 3 || r.Out != "out\n" || r.Err != "err\n" || s.held("a") {
				t.Errorf("%+v, held: %v", r, s.held("a"))
			}
			s.endHooks()
		})
	}
}

func (s *stage) endHooks() {
	s.Helper()
	helper.Eventually(s, "no hook is left", func() bool {
		left := helper.With("ADLOCK_DIR=" + s.locks)
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		return len(left) == 0
	})
}

func TestTheMailHookMailsAFailedRun(t *testing.T) {
	s := newStage(t)
	mailer := s.in("sendmail", "#!/bin/sh\n[ \"$1\" = -t ] && cat >"+s.in("mail.new")+" && mv "+s.in("mail.new")+" "+s.in("mail")+"\n")
	s.want(7, append(job("sh", "-c", "exit 7"), "ADLOCK_HOOK=SENDMAIL="+mailer+" MAILTO=ops@example.org "+example("hook-mail"))...)
	wantWords(t, strings.Join(s.told("mail", 5), "\n"), "To: ops@example.org\n", ": fail: job.dax.run.a\n", "\nrun a: failed with status 7\n")
}

// listener is a server; heard waits for the next request that it gets.
func listener(t *testing.T) (address string, heard func() string) {
	t.Helper()
	need.Tools(t, "curl")
	requests := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		requests <- r.URL.Path + " " + r.Form.Get("event") + r.Form.Get("rid") + " " + r.Form.Get("atom") + " " + r.Form.Get("text")
	}))
	t.Cleanup(server.Close)
	return server.URL, func() string {
		select {
		case request := <-requests:
			return request
		case <-time.After(helper.Patience):
			t.Fatal("nothing is heard")
			return ""
		}
	}
}

func TestTheWebhookPostsAFailedRun(t *testing.T) {
	s := newStage(t)
	address, heard := listener(t)
	s.want(7, append(job("sh", "-c", "exit 7"), "ADLOCK_HOOK="+example("hook-webhook")+" "+address+"/news")...)
	if got := heard(); got != "/news fail job.dax.run.a run a: failed with status 7" {
		t.Errorf("heard %q", got)
	}
}

func TestThePingHookPingsAtStartAndEndOfARun(t *testing.T) {
	s := newStage(t)
	address, heard := listener(t)
	for status, end := range []string{"/check ", "/check/fail "} {
		s.want(status, append(job("sh", "-c", "exit "+itoa(status)), "ADLOCK_HOOK_RUNS=1",
			"ADLOCK_HOOK="+example("hook-ping")+" "+address+"/check")...)
		pings := []string{heard(), heard()}
		slices.Sort(pings) // they may overtake each other
		check.Slices(t, "heard is", pings, []string{end + s.run("a") + "  ", "/check/start " + s.run("a") + "  "})
	}
}

// run returns the newest run of an operand, as a UUID.
func (s *stage) run(operand string) (run string) {
	s.Helper()
	for e, err := range runlog.Read(s.locks, host, math.MaxInt64) {
		must(s, err)
		if e.Operand == operand && e.Kind == runlog.Release {
			run = e.Token[:8] + "-" + e.Token[8:12] + "-" + e.Token[12:16] + "-" + e.Token[16:20] + "-" + e.Token[20:]
		}
	}
	return run
}

// The hooks of one run end in any order. The hook for the failed run starts last.
func TestARunlogThatCannotBeWrittenIsReportedOncePerRun(t *testing.T) {
	s := newStage(t)
	s.adlock(append(job("false"), "ADLOCK_LOGDIR="+s.in("nosuch"), s.notes("told"))...).Refused(t, 1,
		s.in("nosuch")+": open: no such file")
	helper.Eventually(s, "no hook is left", func() bool { return len(helper.With("ADLOCK_DIR="+s.locks)) == 0 })
	told := s.told("told", 2)
	slices.Sort(told)
	if len(told) != 2 || !strings.HasPrefix(told[0], "fail ") || !strings.HasPrefix(told[1], "unwritten job.dax.run.a ") || !strings.Contains(told[1], "no such file") {
		t.Errorf("told of %q", told)
	}
}

func TestALostLockAndAStarvingAtomAreReported(t *testing.T) {
	s := newStage(t)
	owner := s.hold("a", "ADLOCK_HOOK=echo \"$ADLOCK_EVENT $ADLOCK_ATOM pid $ADLOCK_PID: $ADLOCK_TEXT\" >>"+s.in("lost"))
	s.hold("b", "--slots", "1")
	s.refused(75, "; full: an atom of job is running; ",
		append(jobNamed("c", "--starving", "1", "--slots", "1", "true"), s.notes("told"))...)
	if line := s.told("told", 1)[0]; !strings.HasPrefix(line, "starving job.dax.run.c ") {
		t.Errorf("told of %q", line)
	}
	must(t, os.Rename(s.lockOf("a"), s.in("away")))
	owner.Signal(t, syscall.SIGTERM)
	if status, said := owner.Wait(t), owner.Output(); status != 128+15 || !oneLine(said) || !strings.Contains(said, "lost: the lock is gone") {
		t.Errorf("status %d, said %q", status, said) // the job's status
	}
	if line := s.told("lost", 1)[0]; !strings.HasPrefix(line, "lost job.dax.run.a pid "+itoa(owner.PID)+": run a: lost: ") {
		t.Errorf("told of %q", line)
	}
}

func TestTheHookOfALostLockGetsThePidOfItsScript(t *testing.T) {
	s := newStage(t)
	script := s.in("script", `. "$library"; adlock_get run a 0 || exit; mv "$ADLOCK_DIR"/lock.* "$ADLOCK_DIR/../away"; echo $$; adlock_release`)
	c := s.command("ADLOCK_BIN="+helper.Binary(t), "ADLOCK_PROGRAM=job",
		`ADLOCK_HOOK=echo "$ADLOCK_EVENT $ADLOCK_PID" >>`+s.in("told"))
	c.Args, c.Env = []string{"sh", script}, append(c.Env, "library="+filepath.Join(helper.Root(), "sh/adlock.sh"))
	r := c.Run(t)
	if told := s.told("told", 1)[0]; r.Status != 75 || told != "lost "+strings.TrimSpace(r.Out) {
		t.Errorf("%+v, told of %q", r, told)
	}
}
