package lockdir

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/locker"
	"adlock/test/support/intercept"
)

// wholeOf returns every file of the directory with its content and mtime.
func wholeOf(t *testing.T, k *Locker) (all string) {
	t.Helper()
	entries, err := os.ReadDir(k.Dir.Path("."))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			t.Fatal(err)
		}
		all += entry.Name() + " " + info.ModTime().String() + " " + contentOf(t, k, entry.Name()) + "\n"
	}
	return all
}

func TestAnAtomIsTakenDeniedAndReleasedAtOnce(t *testing.T) {
	k, me := newLocker(t), self(t)
	r := ask(me)
	r.AtOnce = true
	held := wantVerdict(t, k, r, locker.Acquired)
	other := ask(sleeper(t))
	other.Atom.Operand, other.AtOnce = "/etc/passwd", true
	wantVerdict(t, k, other, locker.Acquired)
	again := r
	again.Atom = other.Atom
	wantVerdict(t, k, again, locker.Busy)
	if err := k.Release(locker.ReleaseRequest{Name: motdFiles, Token: held.Token, AtOnce: true}); err != nil {
		t.Fatal(err)
	}
	r.Limits.IfElapsed = time.Hour
	wantVerdict(t, k, r, locker.TooSoon)
}

func TestWhatCannotBeTakenAtOnceChangesNothing(t *testing.T) {
	for claim, prepare := range map[string]func(t *testing.T, k *Locker, r *locker.Request){
		"a dead owner": func(t *testing.T, k *Locker, r *locker.Request) { wantVerdict(t, k, ask(dead(t)), locker.Acquired) },
		"a start from within the owner's job": func(t *testing.T, k *Locker, r *locker.Request) {
			wantVerdict(t, k, ask(self(t)), locker.Acquired)
		},
		"an expired owner": func(t *testing.T, k *Locker, r *locker.Request) {
			wantVerdict(t, k, ask(sleeper(t)), locker.Acquired)
			r.Limits.ExpireAfter, r.LeaveExpired = 0, true
		},
		"a wait for a busy atom": func(t *testing.T, k *Locker, r *locker.Request) {
			wantVerdict(t, k, ask(sleeper(t)), locker.Acquired)
			r.Wait = time.Hour
		},
		"a wait for IfElapsed": func(t *testing.T, k *Locker, r *locker.Request) {
			release(t, k, wantVerdict(t, k, ask(self(t)), locker.Acquired))
			r.Limits.IfElapsed, r.Wait, r.WaitElapsed = time.Minute, time.Hour, true
		},
		"a reader":              func(t *testing.T, k *Locker, r *locker.Request) { wantVerdict(t, k, read(sleeper(t)), locker.Acquired) },
		"a newcomer that reads": func(t *testing.T, k *Locker, r *locker.Request) { r.Shared = true },
		"slots":                 func(t *testing.T, k *Locker, r *locker.Request) { r.Slots = 1 },
		"a last lock to come": func(t *testing.T, k *Locker, r *locker.Request) {
			release(t, k, wantVerdict(t, k, ask(self(t)), locker.Acquired))
			setLast(t, k, time.Now().Add(time.Hour))
		},
		"a lock left empty": func(t *testing.T, k *Locker, r *locker.Request) { plant(t, k, "", time.Hour) },
		"a damaged lock":    func(t *testing.T, k *Locker, r *locker.Request) { plant(t, k, "x", 0) },
	} {
		k := newLocker(t)
		r := ask(self(t))
		prepare(t, k, &r)
		r.AtOnce = true
		if claim == "a reader" { // its lock is seen once the newcomer's own is in place
			if _, err := k.Take(r); !errors.Is(err, locker.ErrNotAtOnce) || strings.Contains(wholeOf(t, k), "lock."+motdFiles) {
				t.Errorf("%s: %v\n%s", claim, err, wholeOf(t, k))
			}
			continue
		}
		before := wholeOf(t, k)
		outcome, err := k.Take(r)
		if err == nil || outcome.Verdict == locker.Acquired {
			t.Errorf("%s: %v", claim, outcome)
		}
		if after := wholeOf(t, k); after != before {
			t.Errorf("%s: before\n%s\nafter\n%s", claim, before, after)
		}
	}
}

func TestWhatCannotBeReleasedAtOnceChangesNothing(t *testing.T) {
	for claim, prepare := range map[string]func(t *testing.T, k *Locker, held locker.Outcome, r *locker.ReleaseRequest){
		"another's token": func(t *testing.T, k *Locker, held locker.Outcome, r *locker.ReleaseRequest) {
			r.Token = strings.Repeat("0", 32)
		},
		"a lock that is gone": func(t *testing.T, k *Locker, held locker.Outcome, r *locker.ReleaseRequest) {
			if err := os.Remove(k.Dir.Path("lock." + motdFiles)); err != nil {
				t.Fatal(err)
			}
		},
		"a lock under another's guard": func(t *testing.T, k *Locker, held locker.Outcome, r *locker.ReleaseRequest) {
			takeGuard(t, k, motdFiles)
		},
	} {
		k := newLocker(t)
		held := wantVerdict(t, k, ask(self(t)), locker.Acquired)
		r := locker.ReleaseRequest{Name: motdFiles, Token: held.Token, AtOnce: true}
		prepare(t, k, held, &r)
		before := wholeOf(t, k)
		if err := k.Release(r); !errors.Is(err, locker.ErrNotAtOnce) {
			t.Errorf("%s: %v", claim, err)
		}
		if after := wholeOf(t, k); after != before {
			t.Errorf("%s: before\n%s\nafter\n%s", claim, before, after)
		}
	}
}

// The helper that the script runs next finds the lock still there, and reports the failure.
func TestALastLockThatCannotBeStampedKeepsTheActiveLock(t *testing.T) {
	k := newLocker(t)
	held := wantVerdict(t, k, ask(self(t)), locker.Acquired)
	var err error
	intercept.Run(t, func() {
		err = k.Release(locker.ReleaseRequest{Name: motdFiles, Token: held.Token, AtOnce: true})
	}, func(intercept.Call) unix.Errno { return unix.EIO }, unix.SYS_UTIMENSAT)
	if !errors.Is(err, locker.ErrNotAtOnce) || !strings.Contains(wholeOf(t, k), "lock."+motdFiles) {
		t.Errorf("%v\n%s", err, wholeOf(t, k))
	}
	release(t, k, held)
}
