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
	then := "monotonic=" + (process.Monotonic() - d).String()
	text := regexp.MustCompile(`monotonic=\S+`).ReplaceAllString(contentOf(t, k, file), then)
	must(t, os.WriteFile(k.Dir.Path(file), []byte(text), 0o600))
}

func memoryOf(t *testing.T, k *Locker) learn.State {
	t.Helper()
	last, err := k.Dir.Last(motdFiles)
	must(t, err)
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

func TestAnAtomWithoutRunsHasNoLearnedLimit(t *testing.T) {
	k := newLocker(t)
	if o := wantVerdict(t, k, learner(sleeper(t)), locker.Acquired); o.ExpireAfter != limit.Never {
		t.Errorf("ExpireAfter is %s", o.ExpireAfter)
	}
	wantVerdict(t, k, learner(sleeper(t)), locker.Busy)
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

func TestAnOwnerEndedAtItsLimitDoublesItAndOneEndedSoonerDoesNot(t *testing.T) {
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
		t.Errorf("an owner that was ended sooner taught %q", s.Lines())
	}

	backdate(t, k, 2*time.Hour)
	dueNow(t, k)
	awaitAsleep(t, impatient.Owner)
	o := wantVerdict(t, k, learner(sleeper(t)), locker.Acquired)
	s := memoryOf(t, k)
	if s.ExpireAfter(0) < granted.ExpireAfter(0)*3/2 || o.ExpireAfter != s.ExpireAfter(s.IfElapsed()) {
		t.Errorf("ExpireAfter went from %s to %s, in force is %s", granted.ExpireAfter(0), s.ExpireAfter(0), o.ExpireAfter)
	}
}

// dueNow makes the last completion so old that no IfElapsed counts.
func dueNow(t *testing.T, k *Locker) {
	t.Helper()
	setLast(t, k, time.Now().Add(-24*time.Hour))
}

func TestALearnedLimitDoesNotShortenWhatTheOwnerAskedFor(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	complete(t, k, owner, 30, 10*time.Minute)
	long := ask(owner)
	long.Limits.ExpireAfter = 5 * time.Hour
	wantVerdict(t, k, long, locker.Acquired)
	backdate(t, k, 4*time.Hour)
	wantVerdict(t, k, learner(sleeper(t)), locker.Busy)
}

func TestWithoutAutoTheLastLockStaysEmpty(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	release(t, k, wantVerdict(t, k, ask(owner), locker.Acquired))
	if info, err := os.Stat(k.Dir.Path("last." + motdFiles)); err != nil || info.Size() != 0 {
		t.Errorf("size %d, %v", info.Size(), err)
	}
}

func TestResetForgetsALimitIdleOrRunning(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	complete(t, k, owner, 5, time.Minute)
	stamp := lastStamp(t, k)
	must(t, k.Forget(motdFiles))
	if s := memoryOf(t, k); s != (learn.State{}) || !lastStamp(t, k).Equal(stamp) {
		t.Errorf("still known: %q; stamped %s, now %s", s.Lines(), stamp, lastStamp(t, k))
	}
	complete(t, k, owner, 5, time.Minute)
	held := wantVerdict(t, k, learner(owner), locker.Acquired)
	must(t, k.Forget(motdFiles))
	release(t, k, held)
	if s := memoryOf(t, k); s.Runs != 1 {
		t.Errorf("%d runs known after one", s.Runs)
	}
}
