package lockdir

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/test/support/helper"
)

func read(owner process.Identity) locker.Request {
	r := ask(owner)
	r.Shared = true
	return r
}

func sleeper(t *testing.T) process.Identity {
	t.Helper()
	return start(t, "exec sleep 60")
}

func TestReadersHoldAnAtomTogetherAndKeepAWriterOut(t *testing.T) {
	k := newLocker(t)
	one := wantVerdict(t, k, read(sleeper(t)), locker.Acquired)
	two := wantVerdict(t, k, read(sleeper(t)), locker.Acquired)
	wantVerdict(t, k, ask(sleeper(t)), locker.Busy)
	release(t, k, one)
	wantVerdict(t, k, ask(sleeper(t)), locker.Busy)
	release(t, k, two)
	writer := wantVerdict(t, k, ask(sleeper(t)), locker.Acquired)
	wantVerdict(t, k, read(sleeper(t)), locker.Busy)
	release(t, k, writer)
	if left, _ := filepath.Glob(k.Dir.Path("*." + motdFiles + ".*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestAReaderOfTheLongestNameAndPidHoldsTheAtom(t *testing.T) {
	k, reader := newLocker(t), read(sleeper(t))
	part := strings.Repeat("x", 60)
	reader.Atom = atom.Atom{Program: part, Host: part, Operator: part, Operand: part}
	reader.Owner.PID, reader.Owner.PIDNS = 4194304, reader.Owner.PIDNS+1 // of another namespace: counts as alive
	held := wantVerdict(t, k, reader, locker.Acquired)
	writer := ask(sleeper(t))
	writer.Atom = reader.Atom
	wantVerdict(t, k, writer, locker.Busy)
	if err := k.Release(locker.ReleaseRequest{Name: reader.Atom.Name(), Token: held.Token}); err != nil {
		t.Fatal(err)
	}
	wantVerdict(t, k, writer, locker.Acquired)
}

func TestADeadReaderIsStampedAndBlocksNoNewcomer(t *testing.T) {
	k := newLocker(t)
	wantVerdict(t, k, read(dead(t)), locker.Acquired)
	wantVerdict(t, k, read(dead(t)), locker.Acquired)
	before := lastStamp(t, k)
	wantVerdict(t, k, ask(sleeper(t)), locker.Acquired)
	if !lastStamp(t, k).After(before) {
		t.Error("the last lock was not stamped")
	}
}

func TestAReaderStoppedOnItsWayInIsBusyAlsoByAPassClock(t *testing.T) {
	k, stopped := newLocker(t), sleeper(t)
	r := read(stopped)
	_, record, err := k.tempFile(&r)
	if err != nil {
		t.Fatal(err)
	}
	record.Monotonic -= 2 * entering
	plant(t, k, string(record.Bytes()), 0)
	newcomer := read(sleeper(t))
	newcomer.Now = time.Now().Add(-time.Hour)
	verdict := make(chan locker.Outcome, 1)
	go func() {
		outcome, _ := k.Take(newcomer)
		verdict <- outcome
	}()
	select {
	case outcome := <-verdict:
		if outcome.Verdict != locker.Busy {
			t.Errorf("verdict is %q (%s)", outcome.Verdict, outcome.Reason)
		}
	case <-time.After(helper.Patience):
		t.Error("it looks again and again")
	}
}

func TestAnExpiredReaderIsEndedByAWriterAndNotByAReader(t *testing.T) {
	k, hung := newLocker(t), sleeper(t)
	wantVerdict(t, k, read(hung), locker.Acquired)
	reader := read(sleeper(t))
	reader.Limits.ExpireAfter = 0
	held := wantVerdict(t, k, reader, locker.Acquired)
	if hung.Life() != process.Alive {
		t.Fatal("a reader ended a reader")
	}
	release(t, k, held)
	writer := ask(sleeper(t))
	writer.Limits.ExpireAfter, writer.LeaveExpired = 0, true
	wantVerdict(t, k, writer, locker.Expired)
	writer.LeaveExpired = false
	wantVerdict(t, k, writer, locker.Acquired)
	if hung.Life() != process.Dead {
		t.Error("the reader lives")
	}
}

func TestASecondReadByTheSameProcessIsBusy(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	wantVerdict(t, k, read(owner), locker.Acquired)
	wantVerdict(t, k, read(owner), locker.Busy)
}

func TestAWaitingWriterWakesWhenTheLastReaderReleases(t *testing.T) {
	k := newLocker(t)
	held := wantVerdict(t, k, read(sleeper(t)), locker.Acquired)
	r := ask(sleeper(t))
	r.Wait = time.Minute
	wakesAtRelease(t, k, r, held)
}

func TestReadersAndWritersNeverMeet(t *testing.T) {
	k := newLocker(t)
	var owners []process.Identity
	for range 8 {
		owners = append(owners, sleeper(t))
	}
	var mu sync.Mutex
	var readers, writers, most, wrote int
	enter := func(shared bool) {
		mu.Lock()
		defer mu.Unlock()
		if shared {
			readers++
		} else {
			writers++
			wrote++
		}
		most = max(most, readers)
		if writers > 1 || writers == 1 && readers > 0 {
			t.Errorf("%d writers and %d readers at once", writers, readers)
		}
	}
	leave := func(shared bool) {
		mu.Lock()
		defer mu.Unlock()
		if shared {
			readers--
		} else {
			writers--
		}
	}
	var done sync.WaitGroup
	for i, owner := range owners {
		shared := i%2 == 0
		done.Go(func() {
			for range 60 {
				r := ask(owner)
				r.Shared, r.Wait = shared, helper.Patience
				outcome, err := k.Take(r)
				if err != nil {
					t.Error(err)
					return
				}
				if outcome.Verdict != locker.Acquired {
					continue
				}
				enter(shared)
				time.Sleep(time.Millisecond)
				leave(shared)
				if err := k.Release(locker.ReleaseRequest{Name: motdFiles, Token: outcome.Token}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done.Wait()
	if most < 2 || wrote == 0 {
		t.Errorf("%d readers at once, %d writers in all: nothing was shown", most, wrote)
	}
	if _, err := os.Stat(k.Dir.Path("lock." + motdFiles)); err == nil {
		t.Error("a lock is left")
	}
}

// The newcomer's own stamp, for the first dead reader, must not deny it the atom.
func TestAWriterReplacesManyDeadReaders(t *testing.T) {
	k := newLocker(t)
	for range 3 {
		wantVerdict(t, k, read(dead(t)), locker.Acquired)
	}
	setLast(t, k, time.Now().Add(-2*time.Hour))
	writer := ask(sleeper(t))
	writer.Limits.IfElapsed = time.Hour
	wantVerdict(t, k, writer, locker.Acquired)
}

func TestAReaderThatCannotBeCheckedIsBusyThenStuck(t *testing.T) {
	k, reader := newLocker(t), sleeper(t)
	reader.PIDNS++
	wantVerdict(t, k, read(reader), locker.Acquired)
	writer := ask(sleeper(t))
	wantVerdict(t, k, writer, locker.Busy)
	writer.Limits.ExpireAfter = 0
	if outcome, err := k.Take(writer); outcome.Verdict != locker.Stuck || fault.KindOf(err) != fault.NotPermitted {
		t.Errorf("%v, %v", outcome.Verdict, err)
	}
	wantLocks(t, k, 1)
}

func TestADamagedReadersLockIsAnErrorAndStays(t *testing.T) {
	k := newLocker(t)
	if err := k.Dir.MarkRead(motdFiles); err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"12", "12\n"} {
		plantFile(t, k, "read."+motdFiles+".12", content, time.Hour)
		if outcome, err := k.Take(ask(sleeper(t))); outcome.Verdict != "" || fault.KindOf(err) != fault.IO {
			t.Errorf("%q: %v, %v", content, outcome.Verdict, err)
		}
		wantLocks(t, k, 1)
	}
}

func TestAReaderWhoseLockIsGuardedIsBusy(t *testing.T) {
	k, gone := newLocker(t), dead(t)
	wantVerdict(t, k, read(gone), locker.Acquired)
	lock := readerLock(gone)
	guard := openActive(t, k.Dir.Lock, lock)
	if err := guard.Guard(0); err != nil {
		t.Fatal(err)
	}
	if o := wantVerdict(t, k, ask(sleeper(t)), locker.Busy); o.Reason != "busy: "+locker.ErrGuarded.Error() {
		t.Errorf("%s", o.Reason)
	}
	if err := k.Clear(lock); fault.KindOf(err) != fault.Denied {
		t.Errorf("cleared: %v", err)
	}
	plantFile(t, k, lock.String(), "", time.Hour) // the same inode, empty
	wantVerdict(t, k, ask(sleeper(t)), locker.Busy)
}

// A learned limit does not shorten the limit of a reader; an explicit one does.
func TestAReadersLimitCountsAgainstALearnedOne(t *testing.T) {
	k, reader := newLocker(t), sleeper(t)
	long := read(reader)
	long.Limits.ExpireAfter, long.Limits.Source = 5*time.Hour, policy.Said
	wantVerdict(t, k, long, locker.Acquired)
	writer := ask(sleeper(t))
	writer.Limits.ExpireAfter, writer.Limits.Source = 0, policy.Learned
	wantVerdict(t, k, writer, locker.Busy)
	writer.Limits.Source, writer.LeaveExpired = policy.Said, true
	wantVerdict(t, k, writer, locker.Expired)
}

func TestADeniedReaderLeavesNoLock(t *testing.T) {
	k := newLocker(t)
	wantVerdict(t, k, slotted(sleeper(t), "other", 1), locker.Acquired)
	wantVerdict(t, k, sharing(slotted(sleeper(t), motd.Operand, 1)), locker.Full)
	wantLocks(t, k, 0)
	tooSoon := read(sleeper(t))
	setLast(t, k, time.Now())
	tooSoon.Limits.IfElapsed = time.Hour
	wantVerdict(t, k, tooSoon, locker.TooSoon)
	wantLocks(t, k, 0)
}

func TestADeadOwnerBesideAnEmptyReadersLockIsReplaced(t *testing.T) {
	k, r := newLocker(t), ask(sleeper(t))
	r.Limits.IfElapsed = time.Hour
	wantVerdict(t, k, ask(dead(t)), locker.Acquired)
	if err := k.Dir.MarkRead(motdFiles); err != nil {
		t.Fatal(err)
	}
	plantFile(t, k, "read."+motdFiles+".4711", "", time.Hour)
	helper.Stderr(t, func() { wantVerdict(t, k, r, locker.Acquired) })
	wantLocks(t, k, 1)
}

// There may never be a writer to do it.
func TestReadersClearTheDead(t *testing.T) {
	k := newLocker(t)
	var owners []process.Identity
	for range 5 {
		owners = append(owners, sleeper(t))
		wantVerdict(t, k, read(owners[len(owners)-1]), locker.Acquired)
	}
	for _, owner := range owners {
		end(t, owner)
	}
	for _, left := range []int{3, 1, 0} {
		release(t, k, wantVerdict(t, k, read(sleeper(t)), locker.Acquired))
		if readers, err := k.Dir.Readers(motd.Name()); err != nil || len(readers) != left {
			t.Errorf("%d dead readers are left, want %d: %v", len(readers), left, err)
		}
	}
}
