package atom

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"adlock/lib/name"
	"adlock/lib/process"
)

func read(owner process.Identity) Request {
	r := ask(owner)
	r.Shared = true
	return r
}

func sleeper(t *testing.T) process.Identity {
	t.Helper()
	return start(t, "exec sleep 60")
}

func TestReadersHoldAnAtomTogetherAndKeepAWriterOut(t *testing.T) {
	k := newKeeper(t)
	one := wantVerdict(t, k, read(sleeper(t)), Acquired)
	two := wantVerdict(t, k, read(sleeper(t)), Acquired)
	wantVerdict(t, k, ask(sleeper(t)), Busy)
	release(t, k, one)
	wantVerdict(t, k, ask(sleeper(t)), Busy)
	release(t, k, two)
	writer := wantVerdict(t, k, ask(sleeper(t)), Acquired)
	wantVerdict(t, k, read(sleeper(t)), Busy)
	release(t, k, writer)
	if left, _ := filepath.Glob(k.Dir.Path("*." + motdFiles + ".*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestAReaderOfTheLongestNameAndPidHoldsTheAtom(t *testing.T) {
	k, reader := newKeeper(t), read(sleeper(t))
	part := strings.Repeat("x", 60)
	reader.Atom = name.Atom{Program: part, Host: part, Operator: part, Operand: part}
	reader.Owner.PID, reader.Owner.PIDNS = 4194304, reader.Owner.PIDNS+1 // of another namespace: counts as living
	held := wantVerdict(t, k, reader, Acquired)
	writer := ask(sleeper(t))
	writer.Atom = reader.Atom
	wantVerdict(t, k, writer, Busy)
	if err := k.Release(Return{Files: reader.Atom.Name(), Token: held.Token}); err != nil {
		t.Fatal(err)
	}
	wantVerdict(t, k, writer, Acquired)
}

func TestADeadReaderKeepsNobodyOutAndIsStamped(t *testing.T) {
	k := newKeeper(t)
	wantVerdict(t, k, read(dead(t)), Acquired)
	wantVerdict(t, k, read(dead(t)), Acquired)
	before := lastStamp(t, k)
	wantVerdict(t, k, ask(sleeper(t)), Acquired)
	if !lastStamp(t, k).After(before) {
		t.Error("the last lock was not stamped")
	}
}

func TestAReaderStoppedOnItsWayInIsBusyAlsoByAPassClock(t *testing.T) {
	k, stopped := newKeeper(t), sleeper(t)
	r := read(stopped)
	_, record, err := k.draft(&r)
	if err != nil {
		t.Fatal(err)
	}
	record.Boottime -= 2 * entering
	plant(t, k, string(record.Bytes()), 0)
	newcomer := read(sleeper(t))
	newcomer.Now = time.Now().Add(-time.Hour)
	verdict := make(chan Outcome, 1)
	go func() {
		outcome, _ := k.Take(newcomer)
		verdict <- outcome
	}()
	select {
	case outcome := <-verdict:
		if outcome.Verdict != Busy {
			t.Errorf("verdict is %q (%s)", outcome.Verdict, outcome.Reason)
		}
	case <-time.After(20 * time.Second):
		t.Error("it looks again and again")
	}
}

func TestAnExpiredReaderIsEndedByAWriterAndNotByAReader(t *testing.T) {
	k, hung := newKeeper(t), sleeper(t)
	wantVerdict(t, k, read(hung), Acquired)
	reader := read(sleeper(t))
	reader.Limits.ExpireAfter = 0
	held := wantVerdict(t, k, reader, Acquired)
	if hung.Life() != process.Alive {
		t.Fatal("a reader ended a reader")
	}
	release(t, k, held)
	writer := ask(sleeper(t))
	writer.Limits.ExpireAfter, writer.LeaveExpired = 0, true
	wantVerdict(t, k, writer, Expired)
	writer.LeaveExpired = false
	wantVerdict(t, k, writer, Acquired)
	if hung.Life() != process.Dead {
		t.Error("the reader lives")
	}
}

func TestAProcessThatReadsAlreadyIsBusy(t *testing.T) {
	k, owner := newKeeper(t), sleeper(t)
	wantVerdict(t, k, read(owner), Acquired)
	wantVerdict(t, k, read(owner), Busy)
}

func TestAWaitingWriterWakesWhenTheLastReaderReleases(t *testing.T) {
	k := newKeeper(t)
	held := wantVerdict(t, k, read(sleeper(t)), Acquired)
	r := ask(sleeper(t))
	r.Wait = time.Minute
	verdict := make(chan Verdict)
	go func() { outcome, _ := k.Take(r); verdict <- outcome.Verdict }()
	select {
	case v := <-verdict:
		t.Fatalf("did not wait: %s", v)
	case <-time.After(50 * time.Millisecond):
	}
	release(t, k, held)
	if v := <-verdict; v != Acquired {
		t.Errorf("verdict is %s", v)
	}
}

// TestReadersAndWritersNeverMeet lets them come at the same time, again and again.
func TestReadersAndWritersNeverMeet(t *testing.T) {
	k := newKeeper(t)
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
				r.Shared, r.Wait = shared, 5*time.Millisecond
				outcome, err := k.Take(r)
				if err != nil {
					t.Error(err)
					return
				}
				if outcome.Verdict != Acquired {
					continue
				}
				enter(shared)
				time.Sleep(time.Millisecond)
				leave(shared)
				if err := k.Release(Return{Files: motdFiles, Token: outcome.Token}); err != nil {
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
