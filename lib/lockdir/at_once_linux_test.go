package lockdir

import (
	"cmp"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/locker"
	"adlock/test/support/intercept"
	"adlock/test/support/must"
)

// wholeOf returns every file of the directory with its content and mtime.
func wholeOf(t *testing.T, k *Locker) (all string) {
	t.Helper()
	entries := must.Get(os.ReadDir(k.Dir.Path(".")))(t)
	for _, entry := range entries {
		info := must.Get(entry.Info())(t)
		all += entry.Name() + " " + info.ModTime().String() + " " + contentOf(t, k, entry.Name()) + "\n"
	}
	return all
}

func TestAnAgentCanTakeDenyAndReleaseAnAtom(t *testing.T) {
	k, r := newLocker(t), ask(self(t))
	r.AtOnce = true
	held := wantVerdict(t, k, r, locker.Acquired)
	other := ask(sleeper(t))
	other.Atom.Operand, other.AtOnce = "/etc/passwd", true
	wantVerdict(t, k, other, locker.Acquired)
	again := r
	again.Atom = other.Atom
	wantVerdict(t, k, again, locker.Busy)
	must.Do(t, k.Release(locker.ReleaseRequest{Name: motdFiles, Token: held.Token, AtOnce: true}))
	r.Limits.IfElapsed = time.Hour
	wantVerdict(t, k, r, locker.TooSoon)
}

func TestARequestThatAnAgentCannotServeChangesNothing(t *testing.T) {
	me, gone, other := self(t), dead(t), sleeper(t)
	has := func(requests ...locker.Request) func(*Locker) {
		return func(k *Locker) {
			for _, r := range requests {
				wantVerdict(t, k, r, locker.Acquired)
			}
		}
	}
	ran := func(k *Locker) { release(t, k, wantVerdict(t, k, ask(me), locker.Acquired)) }
	toCome := func(k *Locker) { ran(k); setLast(t, k, time.Now().Add(time.Hour)) }
	asks := func(change func(r *locker.Request)) locker.Request {
		r := ask(me)
		change(&r)
		return r
	}
	leaving := asks(func(r *locker.Request) { r.Limits.ExpireAfter, r.LeaveExpired = 0, true })
	waiting := asks(func(r *locker.Request) { r.Wait = time.Hour })
	waitingLong := asks(func(r *locker.Request) {
		r.Limits.IfElapsed, r.Wait, r.WaitElapsed = time.Minute, time.Hour, true
	})
	for claim, c := range map[string]struct {
		prepare func(k *Locker)
		r       locker.Request
	}{
		"a dead owner":                        {has(ask(gone)), ask(me)},
		"a start from within the owner's job": {has(ask(me)), ask(me)},
		"an expired owner":                    {has(ask(other)), leaving},
		"a wait for a busy atom":              {has(ask(other)), waiting},
		"a wait for IfElapsed":                {ran, waitingLong},
		"a reader":                            {has(read(other)), ask(me)},
		"a newcomer that reads":               {has(), read(me)},
		"slots":                               {has(), slotted(me, motd.Operand, 1)},
		"a last lock to come":                 {toCome, ask(me)},
		"a lock left empty":                   {func(k *Locker) { plant(t, k, "", time.Hour) }, ask(me)},
		"an owner with a later start":         {has(replacing(other, 0)), replacing(me, time.Hour)},
		"a damaged lock":                      {func(k *Locker) { plant(t, k, "x", 0) }, ask(me)},
	} {
		k, r := newLocker(t), c.r
		c.prepare(k)
		r.AtOnce = true
		before := wholeOf(t, k)
		outcome, err := k.Take(r)
		if err == nil || outcome.Verdict == locker.Acquired {
			t.Errorf("%s: %v", claim, outcome)
		}
		if claim == "a reader" { // the newcomer sees it only once its own lock is in place, and removes that again
			if !errors.Is(err, locker.ErrNotAtOnce) || isThere(k, motdLock.String()) {
				t.Errorf("%s: %v\n%s", claim, err, wholeOf(t, k))
			}
		} else if after := wholeOf(t, k); after != before {
			t.Errorf("%s: before\n%s\nafter\n%s", claim, before, after)
		}
	}
}

func TestAReleaseThatAnAgentCannotServeChangesNothing(t *testing.T) {
	gone := func(k *Locker) { must.Do(t, os.Remove(k.Dir.Path(motdLock.String()))) }
	for claim, c := range map[string]struct {
		prepare func(k *Locker)
		token   string // "": the owner's
	}{
		"another's token":              {func(*Locker) {}, strings.Repeat("0", 32)},
		"a lock that is gone":          {gone, ""},
		"a lock under another's guard": {func(k *Locker) { takeGuard(t, k, motdFiles) }, ""},
	} {
		k := newLocker(t)
		held := wantVerdict(t, k, ask(self(t)), locker.Acquired)
		r := locker.ReleaseRequest{Name: motdFiles, Token: cmp.Or(c.token, held.Token), AtOnce: true}
		c.prepare(k)
		before := wholeOf(t, k)
		if err := k.Release(r); !errors.Is(err, locker.ErrNotAtOnce) {
			t.Errorf("%s: %v", claim, err)
		}
		if after := wholeOf(t, k); after != before {
			t.Errorf("%s: before\n%s\nafter\n%s", claim, before, after)
		}
	}
}

// The helper that the script runs next finds the lock, releases it, and reports the failure.
func TestAnAgentThatCannotStampKeepsTheActiveLock(t *testing.T) {
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
