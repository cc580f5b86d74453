package lockdir

import (
	"os"
	"slices"
	"testing"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/test/support/must"
)

func self(t *testing.T) process.Identity {
	t.Helper()
	return must.Get(process.Of(os.Getpid()))(t)
}

func wantLocks(t *testing.T, k *Locker, want int) {
	t.Helper()
	got := slices.DeleteFunc(locksOf(t, k), func(file string) bool { return atom.ParseFile(file).Name != motdFiles })
	if len(got) != want {
		t.Errorf("%q are in place, want %d", got, want)
	}
}

func TestANewcomerDoesNotWithdrawAnothersLock(t *testing.T) {
	for _, owner := range []process.Identity{sleeper(t), dead(t)} {
		k := newLocker(t)
		taken := wantVerdict(t, k, ask(owner), locker.Acquired)
		must.Do(t, k.Release(locker.ReleaseRequest{Name: motdFiles, Token: taken.Token, Withdraw: true}))
		wantLocks(t, k, 1)
	}
}

func TestARepeatedReleaseOfALostLockIsNoError(t *testing.T) {
	k := newLocker(t)
	taken := wantVerdict(t, k, ask(self(t)), locker.Acquired)
	release(t, k, taken)
	wantVerdict(t, k, ask(sleeper(t)), locker.Acquired)
	for again, want := range map[bool]fault.Kind{true: 0, false: fault.Denied} {
		err := k.Release(locker.ReleaseRequest{Name: motdFiles, Token: taken.Token, Again: again})
		if fault.KindOf(err) != want {
			t.Errorf("begun before %v: %v", again, err)
		}
	}
	wantLocks(t, k, 1)
}

func TestAReaderThatHoldsBothItsLocksReleasesBoth(t *testing.T) {
	k, owner := newLocker(t), self(t)
	taken := wantVerdict(t, k, read(owner), locker.Acquired)
	plant(t, k, contentOf(t, k, readerLock(owner).String()), 0)
	release(t, k, taken)
	wantLocks(t, k, 0)
}
