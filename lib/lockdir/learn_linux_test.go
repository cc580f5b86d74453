package lockdir

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"adlock/lib/learn"
	"adlock/lib/limit"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/runlog"
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
	path := k.Dir.Path(file)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	then := "monotonic=" + (process.Monotonic() - d).String()
	if err := os.WriteFile(path, regexp.MustCompile(`monotonic=\S+`).ReplaceAll(content, []byte(then)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func memoryOf(t *testing.T, k *Locker) learn.State {
	t.Helper()
	last, err := k.Dir.Last(motdFiles)
	if err != nil {
		t.Fatal(err)
	}
	return last.Memory.Learned
}

// complete runs the atom n times for d, successfully.
func complete(t *testing.T, k *Locker, owner process.Identity, n int, d time.Duration) {
	t.Helper()
	for range n {
		held := wantVerdict(t, k, learner(owner), locker.Acquired)
		backdate(t, k, d)
		release(t, k, held)
		setLast(t, k, time.Now().Add(-24*time.Hour))
	}
}

func TestSuccessTeachesAndStampsTheLastLock(t *testing.T) {
	k, owner := newLocker(t), start(t, "exec sleep 60")
	held := wantVerdict(t, k, learner(owner), locker.Acquired)
	backdate(t, k, 10*time.Minute)
	release(t, k, held)
	if s := memoryOf(t, k); s.Runs != 1 || s.Typical().Round(time.Minute) != 10*time.Minute {
		t.Errorf("learned %q", s.Lines())
	}
	if time.Since(lastStamp(t, k)) > time.Minute {
		t.Error("the last lock was not stamped")
	}
}

func TestOnlySuccessTeachesAndOnlyWhereAskedFor(t *testing.T) {
	k, owner := newLocker(t), start(t, "exec sleep 60")
	for _, c := range []struct {
		r   locker.Request
		end locker.ReleaseRequest
	}{
		{ask(owner), locker.ReleaseRequest{Status: runlog.Some(0)}},
		{learner(owner), locker.ReleaseRequest{Status: runlog.Some(3)}},
		{learner(owner), locker.ReleaseRequest{Status: runlog.Some(143), Signal: "TERM"}},
	} {
		c.end.Name, c.end.Token = motdFiles, wantVerdict(t, k, c.r, locker.Acquired).Token
		if err := k.Release(c.end); err != nil {
			t.Fatal(err)
		}
		setLast(t, k, time.Now().Add(-24*time.Hour))
	}
	if s := memoryOf(t, k); s != (learn.State{}) {
		t.Errorf("learned %q", s.Lines())
	}
}

func TestAnAtomWithoutRunsHasNoLearnedLimit(t *testing.T) {
	k := newLocker(t)
	if o := wantVerdict(t, k, learner(start(t, "exec sleep 60")), locker.Acquired); o.ExpireAfter != limit.Never {
		t.Errorf("ExpireAfter is %s", o.ExpireAfter)
	}
	wantVerdict(t, k, learner(start(t, "exec sleep 60")), locker.Busy)
}

func TestLearnedLimitsAreInTheLockAndTheRunlog(t *testing.T) {
	k, owner := newLocker(t), start(t, "exec sleep 60")
	complete(t, k, owner, 30, 10*time.Minute)
	o := wantVerdict(t, k, learner(owner), locker.Acquired)
	if o.ExpireAfter < 30*time.Minute || o.ExpireAfter > time.Hour {
		t.Errorf("ExpireAfter is %s", o.ExpireAfter)
	}
	active, err := k.Dir.Active(motdFiles)
	if err != nil {
		t.Fatal(err)
	}
	defer active.Close()
	if r := active.Record; r.ExpireAfter.Round(time.Second) != o.ExpireAfter.Round(time.Second) || r.IfElapsed < 9*time.Minute || !r.Learn {
		t.Errorf("the lock says IfElapsed %s, ExpireAfter %s", r.IfElapsed, r.ExpireAfter)
	}
	for e := range k.Log.Newest(1 << 20) {
		if e.Kind != runlog.Acquire || !strings.Contains(e.Reason, "30 successful runs: typically") {
			t.Errorf("the runlog has %s %q", e.Kind, e.Reason)
		}
		break
	}
	other := learner(start(t, "exec sleep 60"))
	if denied := wantVerdict(t, k, other, locker.Busy); !strings.Contains(denied.Reason, "the learned ExpireAfter is 3") {
		t.Errorf("denied: %s", denied.Reason)
	}
}

func TestAnOwnerEndedAtItsLimitDoublesItAndOneEndedSoonerDoesNot(t *testing.T) {
	k, owner := newLocker(t), start(t, "exec sleep 60")
	complete(t, k, owner, 30, 10*time.Minute)
	granted := memoryOf(t, k)
	watchFor(t, time.Second)

	wantVerdict(t, k, learner(start(t, "exec sleep 60")), locker.Acquired)
	impatient := ask(start(t, "exec sleep 60"))
	impatient.Auto, impatient.Limits.ExpireAfter = locker.Auto{IfElapsed: true}, 0
	setLast(t, k, time.Now().Add(-24*time.Hour))
	wantVerdict(t, k, impatient, locker.Acquired)
	if s := memoryOf(t, k); s != granted {
		t.Errorf("an owner that was ended sooner taught %q", s.Lines())
	}

	backdate(t, k, 2*time.Hour)
	setLast(t, k, time.Now().Add(-24*time.Hour))
	awaitAsleep(t, impatient.Owner)
	o := wantVerdict(t, k, learner(start(t, "exec sleep 60")), locker.Acquired)
	if s := memoryOf(t, k); s.ExpireAfter(0) < granted.ExpireAfter(0)*3/2 || o.ExpireAfter != s.ExpireAfter(s.IfElapsed()) {
		t.Errorf("ExpireAfter went from %s to %s, in force is %s", granted.ExpireAfter(0), s.ExpireAfter(0), o.ExpireAfter)
	}
}

func TestALearnedLimitDoesNotShortenWhatTheOwnerAskedFor(t *testing.T) {
	k, owner := newLocker(t), start(t, "exec sleep 60")
	complete(t, k, owner, 30, 10*time.Minute)
	long := ask(owner)
	long.Limits.ExpireAfter = 5 * time.Hour
	wantVerdict(t, k, long, locker.Acquired)
	backdate(t, k, 4*time.Hour)
	wantVerdict(t, k, learner(start(t, "exec sleep 60")), locker.Busy)
}

func TestWithoutAutoTheLastLockStaysEmpty(t *testing.T) {
	k, owner := newLocker(t), start(t, "exec sleep 60")
	release(t, k, wantVerdict(t, k, ask(owner), locker.Acquired))
	if info, err := os.Stat(k.Dir.Path("last." + motdFiles)); err != nil || info.Size() != 0 {
		t.Errorf("size %d, %v", info.Size(), err)
	}
}

func TestResetForgetsALimitIdleOrRunning(t *testing.T) {
	k, owner := newLocker(t), start(t, "exec sleep 60")
	complete(t, k, owner, 5, time.Minute)
	stamp := lastStamp(t, k)
	if err := k.Forget(motdFiles); err != nil {
		t.Fatal(err)
	}
	if s := memoryOf(t, k); s != (learn.State{}) || !lastStamp(t, k).Equal(stamp) {
		t.Errorf("still known: %q; stamped %s, now %s", s.Lines(), stamp, lastStamp(t, k))
	}
	complete(t, k, owner, 5, time.Minute)
	held := wantVerdict(t, k, learner(owner), locker.Acquired)
	if err := k.Forget(motdFiles); err != nil {
		t.Fatal(err)
	}
	release(t, k, held)
	if s := memoryOf(t, k); s.Runs != 1 {
		t.Errorf("%d runs known after one", s.Runs)
	}
}

func TestManyRequestsTooSoonStretchIfElapsed(t *testing.T) {
	k, owner := newLocker(t), start(t, "exec sleep 60")
	release(t, k, wantVerdict(t, k, learner(owner), locker.Acquired))
	for range 25 {
		wantVerdict(t, k, learner(owner), locker.TooSoon)
	}
	setLast(t, k, time.Now().Add(-24*time.Hour))
	held := wantVerdict(t, k, learner(owner), locker.Acquired)
	if s := memoryOf(t, k); !s.Spammed() || s.IfElapsed() != 2*learn.LeastIfElapsed {
		t.Errorf("IfElapsed is %s", s.IfElapsed())
	}
	release(t, k, held)
	setLast(t, k, time.Now().Add(-24*time.Hour))
	release(t, k, wantVerdict(t, k, learner(owner), locker.Acquired))
	if s := memoryOf(t, k); s.Spammed() {
		t.Error("still stretched though no newcomer asked")
	}
}

func TestStarvingIsReportedOnceUntilTheAtomIsTaken(t *testing.T) {
	k, owner, other := newLocker(t), start(t, "exec sleep 60"), start(t, "exec sleep 60")
	starving := slotted(other, "other", 1)
	starving.Starving = 3
	count := func() (n int) {
		for e := range k.Log.Newest(1 << 20) {
			if e.Kind == runlog.Starved {
				if n++; e.Count != 3 || e.Verdict != string(locker.Full) {
					t.Errorf("starved after %d, %s", e.Count, e.Verdict)
				}
			}
		}
		return n
	}
	for round := range 2 {
		held := wantVerdict(t, k, slotted(owner, motd.Operand, 1), locker.Acquired)
		for n, want := range []int{0, 0, 1, 1, 1, 1} {
			wantVerdict(t, k, starving, locker.Full)
			if got := count(); got != round+want {
				t.Fatalf("round %d, denial %d: said %d times", round, n+1, got)
			}
		}
		release(t, k, held)
		once := wantVerdict(t, k, starving, locker.Acquired)
		if err := k.Release(locker.ReleaseRequest{Name: starving.Atom.Name(), Token: once.Token}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTooSoonIsNotStarving(t *testing.T) {
	k, owner := newLocker(t), start(t, "exec sleep 60")
	release(t, k, wantVerdict(t, k, ask(owner), locker.Acquired))
	r := ask(owner)
	r.Limits.IfElapsed, r.Starving = time.Hour, 2
	for range 5 {
		wantVerdict(t, k, r, locker.TooSoon)
	}
	for e := range k.Log.Newest(1 << 20) {
		if e.Kind == runlog.Starved {
			t.Error("too soon counts as starving")
		}
	}
}
