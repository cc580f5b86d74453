package lockdir

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/learn"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/lib/runlog"
	"adlock/test/support/helper"
	"adlock/test/support/must"
)

// learner is a request whose limits are learned.
func learner(owner process.Identity) locker.Request {
	r := ask(owner)
	r.Limits = policy.Limits{}
	r.Auto = locker.Auto{IfElapsed: true, ExpireAfter: true}
	return r
}

// backdate makes the active lock look as if it was taken d ago.
func backdate(t *testing.T, k *Locker, d time.Duration) {
	t.Helper()
	backdateFile(t, k, "lock."+motdFiles, d)
}

func backdateFile(t *testing.T, k *Locker, file string, d time.Duration) {
	t.Helper()
	then := "monotonic=" + (process.Monotonic() - d).String()
	text := regexp.MustCompile(`monotonic=\S+`).ReplaceAllString(contentOf(t, k, file), then)
	must.Do(t, os.WriteFile(k.Dir.Path(file), []byte(text), 0o600))
}

func memoryOf(t *testing.T, k *Locker) learn.State {
	t.Helper()
	last := must.Get(k.Dir.Last(motdFiles))(t)
	return last.Memory.Learned
}

// complete runs the atom n times for d, successfully.
func complete(t *testing.T, k *Locker, owner process.Identity, n int, d time.Duration) {
	t.Helper()
	for range n {
		held := wantVerdict(t, k, learner(owner), locker.Acquired)
		backdate(t, k, d)
		release(t, k, held)
		dueNow(t, k)
	}
}

func TestLearnedLimitsAreInTheLockAndTheRunlog(t *testing.T) {
	k := newLocker(t)
	complete(t, k, sleeper(t), 30, 10*time.Minute)
	o := wantVerdict(t, k, learner(sleeper(t)), locker.Acquired)
	if o.ExpireAfter < 30*time.Minute || o.ExpireAfter > time.Hour {
		t.Errorf("ExpireAfter is %s", o.ExpireAfter)
	}
	r := lockOf(t, k).Record
	if r.ExpireAfter.Round(time.Second) != o.ExpireAfter.Round(time.Second) || r.IfElapsed < 9*time.Minute || !r.Learn {
		t.Errorf("the lock says IfElapsed %s, ExpireAfter %s", r.IfElapsed, r.ExpireAfter)
	}
	if e := eventOf(t, k, runlog.Acquire); !strings.Contains(e.Reason, "30 successful runs: typically") {
		t.Errorf("the runlog has %q", e.Reason)
	}
	denied := wantVerdict(t, k, learner(sleeper(t)), locker.Busy)
	if !strings.Contains(denied.Reason, "the learned ExpireAfter is 3") {
		t.Errorf("denied: %s", denied.Reason)
	}
}

func TestOnlyAnEndingAtTheLearnedLimitRaisesThatLimit(t *testing.T) {
	k := newLocker(t)
	complete(t, k, sleeper(t), 30, 10*time.Minute)
	granted := memoryOf(t, k)
	watchFor(t, time.Second)

	wantVerdict(t, k, learner(sleeper(t)), locker.Acquired)
	impatient := hasty(sleeper(t))
	impatient.Auto = locker.Auto{IfElapsed: true}
	dueNow(t, k)
	wantVerdict(t, k, impatient, locker.Acquired)
	if s := memoryOf(t, k); s != granted {
		t.Errorf("an owner that was ended sooner taught %+v", s)
	}

	backdate(t, k, 2*time.Hour)
	dueNow(t, k)
	awaitAsleep(t, impatient.Owner)
	o := wantVerdict(t, k, learner(sleeper(t)), locker.Acquired)
	if s := memoryOf(t, k); s.ExpireAfter(0) < granted.ExpireAfter(0)*3/2 || o.ExpireAfter != s.ExpireAfter(s.IfElapsed()) {
		t.Errorf("ExpireAfter went from %s to %s, in force is %s", granted.ExpireAfter(0), s.ExpireAfter(0), o.ExpireAfter)
	}
}

// dueNow makes the last completion so old that no IfElapsed counts.
func dueNow(t *testing.T, k *Locker) {
	t.Helper()
	setLast(t, k, time.Now().Add(-24*time.Hour))
}

func TestTheLastLockStaysEmptyWithoutAuto(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	release(t, k, wantVerdict(t, k, ask(owner), locker.Acquired))
	if info, err := os.Stat(k.Dir.Path("last." + motdFiles)); err != nil || info.Size() != 0 {
		t.Errorf("size %d, %v", info.Size(), err)
	}
}

func TestForgetDeletesTheLimitsOfIdleAndRunningAtoms(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	complete(t, k, owner, 5, time.Minute)
	stamp := lastStamp(t, k)
	must.Do(t, k.Forget(motdFiles))
	if s := memoryOf(t, k); s != (learn.State{}) || !lastStamp(t, k).Equal(stamp) {
		t.Errorf("still known: %+v; stamped %s, now %s", s, stamp, lastStamp(t, k))
	}
	complete(t, k, owner, 5, time.Minute)
	held := wantVerdict(t, k, learner(owner), locker.Acquired)
	must.Do(t, k.Forget(motdFiles))
	release(t, k, held)
	if s := memoryOf(t, k); s.Runs != 1 {
		t.Errorf("%d runs known after one", s.Runs)
	}
}

// denied returns that many denials.
func denied(a atom.Atom, verdict locker.Verdict, times int) []runlog.Event {
	e := aboutAtom(a, runlog.Deny, 7)
	e.Verdict = string(verdict)
	return slices.Repeat([]runlog.Event{e}, times)
}

// counted returns a denial with its number in the row.
func counted(inARow int) []runlog.Event {
	e := denied(motd, locker.Busy, 1)
	e[0].Count = inARow
	return e
}

// logged writes these events into the runlog.
func logged(t *testing.T, k *Locker, events ...runlog.Event) {
	t.Helper()
	for _, e := range events {
		must.Do(t, k.Log.Append(e))
	}
}

// starves denies once more, and returns the number of denials in a row that this reports; 0: no report.
func starves(t *testing.T, k *Locker, verdict locker.Verdict, starving int) (count int) {
	t.Helper()
	r := ask(process.Identity{PID: 7})
	r.Starving = starving
	said := helper.Stderr(t, func() { k.LogIfDenied(&r, locker.Outcome{Verdict: verdict, Reason: "some reason"}, nil, 0) })
	for e := range k.Log.Newest(1 << 20) {
		if e.Kind == runlog.Starved {
			count = e.Count
			if e.Verdict != string(verdict) || e.Reason != "some reason" || e.PID != 7 {
				t.Errorf("starved: %+v", e)
			}
		}
		break
	}
	want := ""
	if count > 0 {
		want = fmt.Sprintf("adlock: editfile /etc/motd: starving: denied %d times in a row; some reason; let it wait (--wait, ADLOCK_WAIT), or raise --slots (ADLOCK_SLOTS)\n", count)
	}
	if said != want {
		t.Errorf("said %q, want %q", said, want)
	}
	return count
}

func TestAStarvingWaiterIsAdvisedToWaitLonger(t *testing.T) {
	k := newLocker(t)
	r := ask(process.Identity{PID: 7})
	r.Starving = 1
	said := helper.Stderr(t, func() { k.LogIfDenied(&r, locker.Outcome{Verdict: locker.Full, Reason: "full"}, nil, time.Second) })
	if !strings.HasSuffix(said, "; let it wait longer (--wait, ADLOCK_WAIT), or raise --slots (ADLOCK_SLOTS)\n") {
		t.Errorf("said %q", said)
	}
}

func TestDenialsInARowAreReportedAtTenfoldCounts(t *testing.T) {
	type events = []runlog.Event
	before := slices.Concat[events]
	program, host, operator, operand, long := motd, motd, motd, motd, motd
	program.Program, host.Host, operator.Operator, operand.Operand = "x", "x", "x", "x"
	long.Operand = strings.Repeat("x", 3000)
	full := func(times int) events { return denied(motd, locker.Full, times) }
	busy := func(times int) events { return denied(motd, locker.Busy, times) }
	lost := about(runlog.Lost, 7)
	lost.Verdict = string(locker.Full)
	much := denied(long, locker.Full, 256<<10/3000)
	said, taken := events{about(runlog.Starved, 7)}, events{about(runlog.Acquire, 7)}
	for _, c := range []struct {
		claim          string
		before         events
		verdict        locker.Verdict
		starving, want int
	}{
		{"full", full(2), locker.Full, 3, 3},
		{"busy, which is reported as overdue instead", busy(2), locker.Busy, 3, 0},
		{"both", before(busy(1), full(1)), locker.Full, 3, 3},
		{"more than the first report needs", full(4), locker.Full, 3, 0},
		{"ten times as many", full(29), locker.Full, 3, 30},
		{"a hundred times as many", before(counted(998), busy(1)), locker.Full, 10, 1000},
		{"nearly as many", counted(98), locker.Full, 10, 0},
		{"a number between two reports", counted(49), locker.Full, 10, 0},
		{"too few", full(1), locker.Full, 3, 0},
		{"the first", nil, locker.Full, 1, 1},
		{"no report is asked for", full(9), locker.Full, 0, 0},
		{"this one is too soon", full(9), locker.TooSoon, 3, 0},
		{"too soon between", before(full(1), denied(motd, locker.TooSoon, 9)), locker.Full, 3, 0},
		{"no denials", slices.Repeat(events{lost}, 9), locker.Full, 3, 0},
		{"said already", before(full(9), said, full(2)), locker.Full, 3, 0},
		{"taken between", before(full(9), taken, full(1)), locker.Full, 3, 0},
		{"another operand", denied(operand, locker.Full, 9), locker.Full, 3, 0},
		{"another operator", denied(operator, locker.Full, 9), locker.Full, 3, 0},
		{"another program", denied(program, locker.Full, 9), locker.Full, 3, 0},
		{"another host", denied(host, locker.Full, 9), locker.Full, 3, 0},
		{"another atom between", before(full(1), denied(operand, locker.Full, 9), full(1)), locker.Full, 3, 3},
		{"so far back that it is not looked at", before(full(9), much), locker.Full, 3, 0},
	} {
		k := newLocker(t)
		logged(t, k, c.before...)
		if got := starves(t, k, c.verdict, c.starving); got != c.want {
			t.Errorf("%s: %d in a row are reported, want %d", c.claim, got, c.want)
		}
	}
}

func TestNoDenialsAreCountedWithoutARunlog(t *testing.T) {
	k, r := newLocker(t), ask(process.Identity{PID: 7})
	k.Log, r.Starving = nil, 1
	said := helper.Stderr(t, func() { k.LogIfDenied(&r, locker.Outcome{Verdict: locker.Full}, nil, 0) })
	if said != "" {
		t.Errorf("said %q", said)
	}
	wantVerdict(t, k, learner(sleeper(t)), locker.Acquired)
}

func TestOnlyManyDenialsAsTooSoonRaiseIfElapsed(t *testing.T) {
	owner, ifElapsed := sleeper(t), locker.Auto{IfElapsed: true}
	lost := denied(motd, locker.TooSoon, 40)
	for i := range lost {
		lost[i].Kind = runlog.Lost
	}
	for _, c := range []struct {
		claim  string
		before []runlog.Event
		auto   locker.Auto
		want   bool
	}{
		{"enough", denied(motd, locker.TooSoon, 20), ifElapsed, true},
		{"one too few", denied(motd, locker.TooSoon, 19), ifElapsed, false},
		{"busy", denied(motd, locker.Busy, 40), ifElapsed, false},
		{"no denials", lost, ifElapsed, false},
		{"IfElapsed is not learned", denied(motd, locker.TooSoon, 40), locker.Auto{ExpireAfter: true}, false},
	} {
		for _, reclaimed := range []bool{false, true} {
			k, r := newLocker(t), learner(owner)
			if reclaimed {
				wantVerdict(t, k, ask(dead(t)), locker.Acquired)
				setLast(t, k, time.Now().Add(-time.Hour))
			}
			logged(t, k, c.before...)
			r.Auto = c.auto
			wantVerdict(t, k, r, locker.Acquired)
			if s := memoryOf(t, k); s.Spammed() != c.want {
				t.Errorf("%s, reclaimed %v: stretched is %v", c.claim, reclaimed, s.Spammed())
			}
		}
	}
}

func TestEachLearnedLimitIsExplained(t *testing.T) {
	for _, auto := range []locker.Auto{{}, {IfElapsed: true}, {ExpireAfter: true}, {IfElapsed: true, ExpireAfter: true}} {
		r := ask(process.Identity{})
		r.Auto = auto
		r.Resolve(learn.State{})
		text := r.Explanation()
		if strings.Contains(text, "IfElapsed 1m: ") != auto.IfElapsed || strings.Contains(text, "ExpireAfter never: ") != auto.ExpireAfter || (auto != locker.Auto{}) != (text != "") {
			t.Errorf("%+v: %q", auto, text)
		}
	}
}

func TestOnlySuccessesAndEndingsAtTheLimitAreLearnedFrom(t *testing.T) {
	k, owner := newLocker(t), self(t)
	for _, c := range []struct {
		claim string
		r     locker.Request
		end   locker.ReleaseRequest
		want  int
	}{
		{"withdrawn", learner(owner), locker.ReleaseRequest{Withdraw: true}, 0},
		{"failed", learner(owner), locker.ReleaseRequest{Status: runlog.Some(1)}, 0},
		{"ended by a signal", learner(owner), locker.ReleaseRequest{Signal: "TERM"}, 0},
		{"not to be learned from", ask(owner), locker.ReleaseRequest{Status: runlog.Some(0)}, 0},
		{"released", learner(owner), locker.ReleaseRequest{}, 1},
		{"succeeded", learner(owner), locker.ReleaseRequest{Status: runlog.Some(0)}, 2},
	} {
		held := wantVerdict(t, k, c.r, locker.Acquired)
		backdate(t, k, 10*time.Minute)
		c.end.Name, c.end.Token = motdFiles, held.Token
		must.Do(t, k.Release(c.end))
		dueNow(t, k)
		if s := memoryOf(t, k); s.Runs != c.want {
			t.Errorf("%s: %d runs are known, want %d", c.claim, s.Runs, c.want)
		}
	}
	complete(t, k, owner, 30, 10*time.Minute)
	before := memoryOf(t, k)
	held := wantVerdict(t, k, learner(owner), locker.Acquired)
	backdate(t, k, 2*time.Hour)
	end := locker.ReleaseRequest{Name: motdFiles, Token: held.Token, Expired: true, Status: runlog.Some(137)}
	must.Do(t, k.Release(end))
	if after := memoryOf(t, k); after.Runs != before.Runs || after.ExpireAfter(0) < before.ExpireAfter(0)*3/2 {
		t.Errorf("ExpireAfter went from %v to %v", before.ExpireAfter(0), after.ExpireAfter(0))
	}
}

func TestAnEndingIsLearnedFromOnlyOnceTheLimitHasPassed(t *testing.T) {
	for age, want := range map[time.Duration]bool{time.Hour - 1: false, time.Hour: true} {
		r := ask(process.Identity{})
		if taught := r.LessonOfEnding(&record.Record{Learn: true, ExpireAfter: time.Hour}, age) != nil; taught != want {
			t.Errorf("ended after %v of an hour: taught is %v", age, taught)
		}
	}
}

func TestAFailureToStoreWhatWasLearnedIsReported(t *testing.T) {
	k := newLocker(t)
	held := wantVerdict(t, k, learner(sleeper(t)), locker.Acquired)
	path := k.Dir.Path("last." + motdFiles)
	must.Do(t, os.Truncate(path, 1<<40)) // too large to be read
	var err error
	said := helper.Stderr(t, func() { err = releaseOf(k, held) })
	if !strings.HasPrefix(said, "adlock: "+path) || strings.Count(said, "\n") != 1 || err == nil {
		t.Errorf("said %q, %v", said, err)
	}
	wantLocks(t, k, 0)
}

func TestForgettingAMissingAtomIsAnError(t *testing.T) {
	k := newLocker(t)
	if err := k.Forget(motdFiles); !os.IsNotExist(err) {
		t.Errorf("forgotten: %v", err)
	}
	if left, _ := filepath.Glob(k.Dir.Path("*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
