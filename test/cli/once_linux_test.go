package cli

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/test/support/helper"
)

// onceEver is a tick so long that none ends while a test runs.
const onceEver = "--once-per=520w"

func ticks(s *stage) []string {
	files, _ := filepath.Glob(s.locks + "/tick.*")
	return files
}

// once runs, with the options, a job that prints "ran".
func (s *stage) once(options ...string) helper.Result {
	s.Helper()
	return s.onceNamed("a", options...)
}

func (s *stage) onceNamed(name string, options ...string) helper.Result {
	s.Helper()
	return s.adlock(append(jobNamed(name, options...), "--", "echo", "ran")...)
}

func TestAJobRunsOnceInEachTick(t *testing.T) {
	s := newStage(t)
	at := func(seconds int) string { return fmt.Sprint("--now=", 1700000000/60*60+seconds) }
	for _, ask := range []struct {
		seconds int
		ran     bool
	}{{0, true}, {0, false}, {59, false}, {60, true}, {30, false}, {61, false}, {-1, true}, {-60, false}, {180, true}, {119, false}} {
		r := s.once("--once-per=1m", at(ask.seconds))
		if ask.ran {
			r.Ran(t)
		} else {
			r.Denied(t)
		}
	}
	s.once("--once-per=0", at(0)).Ran(t)
	s.once("--once-per=1h", at(0)).Ran(t)
	s.once("--once-per=1m", at(0), "-E", "3").Is(t, 3, "…", "…")
}

func TestADryRunAndStatusReportWhetherTheTickIsUsed(t *testing.T) {
	s := newStage(t)
	const in = " in this tick of 1h, which began at 2023-11-14 22:00:00"
	c := s.command(job("--once-per=1h", "--now=1700000000", "--dry-run", "--", "true")...)
	c.Env = append(c.Env, "TZ=UTC")
	const free = "free: never completed, IfElapsed is 0s, no ExpireAfter; not run yet" + in + "\n"
	if r := c.Run(t); r.Status != 0 || !strings.HasPrefix(r.Out, free) ||
		!strings.Contains(r.Out, "\nwarning: --once-per counts on this host alone: ") || len(ticks(s)) > 0 {
		t.Errorf("%+v, and it left %v", r, ticks(s))
	}
	s.once("--once-per=1h", "--now=1700000000").Ran(t)
	c.Run(t).Is(t, 75, "too soon: ran already"+in+"; the next begins at 2023-11-14 23:00:00\n…", "…")
	s.once(onceEver).Ran(t)
	why, _, _ := strings.Cut(s.once(onceEver, "--dry-run").Out, "\n")
	if r := s.want(0, "status", "--json"); !strings.Contains(r.Out, `"takeable":false,"why":"`+why+`"`) ||
		!strings.HasPrefix(why, "too soon: ran already") {
		t.Errorf("status: %+v, want %s", r, why)
	}
}

func TestAFailedRunUsesItsTickWithoutRetryFailed(t *testing.T) {
	s := newStage(t)
	s.want(1, job(onceEver, "false")...)
	s.once(onceEver).Denied(t)
	retried := jobNamed("b", onceEver, "--retry-failed", "--", "sh", "-c", "test -e mended && echo ran")
	s.want(1, retried...)
	s.want(1, retried...)
	s.in("mended", "")
	s.adlock(retried...).Ran(t)
	s.adlock(retried...).Denied(t)
}

func TestADeniedNewcomerUsesNoTick(t *testing.T) {
	s := newStage(t)
	s.once("--if-elapsed=0").Ran(t)
	owner := s.hold("a", "--slots=1")
	s.once(onceEver).Denied(t)
	s.onceNamed("b", onceEver, "--slots=1").Denied(t)
	owner.Signal(t, syscall.SIGTERM)
	owner.Wait(t)
	s.once(onceEver, "--if-elapsed=1h").Denied(t)
	if used := ticks(s); len(used) > 0 {
		t.Errorf("used: %v", used)
	}
	s.once(onceEver).Ran(t)
	s.onceNamed("b", onceEver).Ran(t)
}

func TestAWaiterKeepsTheTickOfItsRequest(t *testing.T) {
	s := newStage(t)
	owner := s.hold("a")
	before := time.Now()
	waiter := s.command(append(job("--once-per=1s", "--wait=1m", "--jitter=100ms"), "--", "sleep", "1000")...).Start(t)
	helper.Eventually(t, "it waits", func() bool { return strings.Contains(s.kinds("a"), "wait") })
	after := time.Now()
	helper.Eventually(t, "two ticks later", func() bool { return time.Since(after) > 2*time.Second })
	owner.Signal(t, syscall.SIGTERM)
	owner.Wait(t)
	helper.Eventually(t, "it runs", func() bool { return len(ticks(s)) == 1 })
	second, is := strings.CutPrefix(filepath.Ext(ticks(s)[0]), ".1-")
	tick, err := strconv.ParseInt(second, 36, 64)
	if !is || err != nil || tick < before.Unix() || tick > after.Unix() {
		t.Errorf("asked at %d, it claimed %d (%v)", before.Unix(), tick, err)
	}
	waiter.Kill(t)
}

func TestAKilledRunHasUsedItsTick(t *testing.T) {
	s := newStage(t)
	owner := s.hold("a", onceEver)
	s.once(onceEver, "--replace").Denied(t)
	helper.KillSession(owner.PID)
	owner.Wait(t)
	s.once(onceEver).Denied(t)
	s.once().Ran(t)
}
