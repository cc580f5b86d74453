package lockdir

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/lib/process"
)

func self(t *testing.T) process.Identity {
	t.Helper()
	id, err := process.Of(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func wantLocks(t *testing.T, k *Locker, want int) {
	t.Helper()
	locks, _ := filepath.Glob(k.Dir.Path("lock." + motdFiles))
	readers, _ := filepath.Glob(k.Dir.Path("read." + motdFiles + ".*"))
	if got := len(locks) + len(readers); got != want {
		t.Errorf("%d locks are in place, want %d: %v %v", got, want, locks, readers)
	}
}

func TestAWithdrawnLockStampsNothing(t *testing.T) {
	k := newLocker(t)
	taken := wantVerdict(t, k, ask(self(t)), locker.Acquired)
	before := lastStamp(t, k)
	if err := k.Release(locker.ReleaseRequest{Name: motdFiles, Token: taken.Token, Withdraw: true}); err != nil {
		t.Fatal(err)
	}
	wantLocks(t, k, 0)
	if !lastStamp(t, k).Equal(before) {
		t.Error("the last lock was stamped")
	}
}

func TestANewcomerDoesNotWithdrawAnothersLock(t *testing.T) {
	for claim, owner := range map[string]process.Identity{"a stranger's": sleeper(t), "a dead one's": dead(t)} {
		k := newLocker(t)
		taken := wantVerdict(t, k, ask(owner), locker.Acquired)
		if err := k.Release(locker.ReleaseRequest{Name: motdFiles, Token: taken.Token, Withdraw: true}); err != nil {
			t.Errorf("%s: %v", claim, err)
		}
		wantLocks(t, k, 1)
	}
}

func TestALockThatIsGoneIsLostUnlessItsReleaseWasBegunBefore(t *testing.T) {
	k := newLocker(t)
	taken := wantVerdict(t, k, ask(self(t)), locker.Acquired)
	release(t, k, taken)
	wantVerdict(t, k, ask(sleeper(t)), locker.Acquired)
	if err := k.Release(locker.ReleaseRequest{Name: motdFiles, Token: taken.Token, Again: true}); err != nil {
		t.Errorf("again: %v", err)
	}
	if err := k.Release(locker.ReleaseRequest{Name: motdFiles, Token: taken.Token}); fault.KindOf(err) != fault.Denied {
		t.Errorf("the first time: %v", err)
	}
	wantLocks(t, k, 1)
}

func TestAReaderThatDiedBetweenItsTwoLocksLeavesNeither(t *testing.T) {
	k, owner := newLocker(t), self(t)
	taken := wantVerdict(t, k, read(owner), locker.Acquired)
	record, err := os.ReadFile(k.Dir.Path("read." + motdFiles + "." + strconv.Itoa(owner.PID)))
	if err != nil {
		t.Fatal(err)
	}
	plant(t, k, string(record), 0)
	release(t, k, taken)
	wantLocks(t, k, 0)
}
