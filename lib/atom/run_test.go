package atom

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"adlock/lib/lock"
	"adlock/lib/process"
)

func TestATakeoversLockIsNoOlderThanTheDeathOfTheOwner(t *testing.T) {
	k, ready := newKeeper(t), filepath.Join(t.TempDir(), "ready")
	deaf := start(t, `trap "" INT TERM; : >'`+ready+`'; while :; do sleep 1; done`)
	eventually(t, "the owner is deaf", func() bool { _, err := os.Stat(ready); return err == nil })
	wantVerdict(t, k, ask(deaf), Acquired)
	newcomer := ask(sleeper(t))
	newcomer.Limits.ExpireAfter, newcomer.Pause = 0, time.Second/2
	began := process.Boottime()
	wantVerdict(t, k, newcomer, Acquired)
	active, err := k.Dir.Active(motdFiles)
	if err != nil {
		t.Fatal(err)
	}
	defer active.Close()
	if into := active.Record.Boottime - began; into < 2*newcomer.Pause {
		t.Errorf("the lock is from %v after the first signal, when the owner lived", into)
	}
}

func TestTheStartOfTheLastRunIsThatOfARunThatDidNotAskForIt(t *testing.T) {
	k, owner := newKeeper(t), sleeper(t)
	r := ask(owner)
	r.FromStart = true
	release(t, k, wantVerdict(t, k, r, Acquired))
	last, err := k.Dir.Last(motdFiles)
	if err != nil {
		t.Fatal(err)
	}
	last.Memory.Started = time.Now().Add(-2 * time.Hour)
	if err := k.Dir.Remember(motdFiles, time.Now().Add(-time.Hour), last.Memory); err != nil {
		t.Fatal(err)
	}
	release(t, k, wantVerdict(t, k, ask(owner), Acquired))
	r.Limits.IfElapsed = 30 * time.Minute
	wantVerdict(t, k, r, TooSoon)
}

// What a crash of the machine leaves of a file that was not synced.
func TestEmptySlotsAndReadersAreClearedAfterAMinute(t *testing.T) {
	k := newKeeper(t)
	if err := k.Dir.MarkRead(motdFiles); err != nil {
		t.Fatal(err)
	}
	r := ask(sleeper(t))
	r.Slots = 1
	empty := func(file string, age time.Duration) {
		t.Helper()
		then := time.Now().Add(-age)
		if err := os.WriteFile(k.Dir.Path(file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(k.Dir.Path(file), then, then); err != nil {
			t.Fatal(err)
		}
	}
	slot, reader := "lock."+motd.Slot(1), "read."+motdFiles+".4711"
	empty(slot, time.Second)
	wantVerdict(t, k, r, Full)
	empty(reader, time.Second)
	wantVerdict(t, k, r, Busy)
	empty(slot, time.Hour)
	empty(reader, time.Hour)
	wantVerdict(t, k, r, Acquired)
}

func TestAReadersLockIsClearedUnlessTheReaderLives(t *testing.T) {
	k, reader := newKeeper(t), sleeper(t)
	wantVerdict(t, k, read(reader), Acquired)
	file := lock.ReaderFile(motdFiles, reader.PID)
	if err := k.Clear(file); err == nil {
		t.Fatal("the lock of a living reader was cleared")
	}
	end(t, reader)
	if err := k.Clear(file); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(k.Dir.Path(file)); !os.IsNotExist(err) {
		t.Errorf("the lock is still there: %v", err)
	}
}

// A reader may release between a writer's look at the last lock and its search
// for readers: often enough where both are tried again and again.
func TestAWriterIsTooSoonAfterAReaderThatReleasedWhileItLooked(t *testing.T) {
	k, reader := newKeeper(t), sleeper(t)
	writer := ask(sleeper(t))
	writer.Limits.IfElapsed = time.Hour
	for range 200 {
		if err := k.Dir.RemoveLast(motdFiles); err != nil {
			t.Fatal(err)
		}
		held := wantVerdict(t, k, read(reader), Acquired)
		knocked, verdict := make(chan struct{}, 1), make(chan Verdict)
		go func() {
			for {
				outcome, err := k.Take(writer)
				if err != nil || outcome.Verdict != Busy {
					verdict <- outcome.Verdict
					return
				}
				select {
				case knocked <- struct{}{}:
				default:
				}
			}
		}()
		for range 2 { // the second time it is between two tries
			<-knocked
		}
		release(t, k, held)
		if v := <-verdict; v != TooSoon {
			t.Fatalf("verdict is %q", v)
		}
	}
}

func TestToForgetDoesNotUndoAReadersStamp(t *testing.T) {
	k, reader := newKeeper(t), sleeper(t)
	k.Log = nil
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	for range 2000 {
		held := wantVerdict(t, k, read(reader), Acquired)
		setLast(t, k, old)
		forgotten := make(chan error)
		go func() { forgotten <- k.Forget(motdFiles) }()
		release(t, k, held)
		if err := <-forgotten; err != nil {
			t.Fatal(err)
		}
		if lastStamp(t, k).Equal(old) {
			t.Fatal("the last lock was set back")
		}
	}
}
