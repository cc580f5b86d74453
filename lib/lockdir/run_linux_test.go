package lockdir

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/locker"
	"adlock/lib/process"
)

func TestATakeoversLockIsNoOlderThanTheDeathOfTheOwner(t *testing.T) {
	k, ready := newLocker(t), filepath.Join(t.TempDir(), "ready")
	deaf := start(t, `trap "" INT TERM; : >'`+ready+`'; while :; do sleep 1; done`)
	eventually(t, "the owner ignores signals", func() bool { _, err := os.Stat(ready); return err == nil })
	wantVerdict(t, k, ask(deaf), locker.Acquired)
	newcomer := ask(sleeper(t))
	newcomer.Limits.ExpireAfter, newcomer.Pause = 0, time.Second/2
	began := process.Boottime()
	wantVerdict(t, k, newcomer, locker.Acquired)
	active, err := k.Dir.Active(motdFiles)
	if err != nil {
		t.Fatal(err)
	}
	defer active.Close()
	if into := active.Record.Boottime - began; into < 2*newcomer.Pause {
		t.Errorf("the lock is from %v after the first signal, when the owner lived", into)
	}
}

func TestARunWithoutFromStartReplacesTheOldStart(t *testing.T) {
	k, owner := newLocker(t), sleeper(t)
	r := ask(owner)
	r.FromStart = true
	release(t, k, wantVerdict(t, k, r, locker.Acquired))
	last, err := k.Dir.Last(motdFiles)
	if err != nil {
		t.Fatal(err)
	}
	last.Memory.Started = time.Now().Add(-2 * time.Hour)
	if err := k.Dir.Remember(motdFiles, time.Now().Add(-time.Hour), last.Memory); err != nil {
		t.Fatal(err)
	}
	release(t, k, wantVerdict(t, k, ask(owner), locker.Acquired))
	r.Limits.IfElapsed = 30 * time.Minute
	wantVerdict(t, k, r, locker.TooSoon)
}

// A crash of the machine leaves a file empty that was not synced.
func TestEmptySlotsAndReadersAreClearedAfterAMinute(t *testing.T) {
	k := newLocker(t)
	if err := k.Dir.MarkRead(motdFiles); err != nil {
		t.Fatal(err)
	}
	r := ask(sleeper(t))
	r.Slots = 1
	empty := func(file string, age time.Duration) {
		t.Helper()
		plantFile(t, k, file, "", age)
	}
	slot, reader := motd.Slot(1).ActiveLock(), motd.Name().ReaderLock(4711)
	empty(slot, time.Second)
	wantVerdict(t, k, r, locker.Full)
	empty(reader, time.Second)
	wantVerdict(t, k, r, locker.Busy)
	empty(slot, time.Hour)
	empty(reader, time.Hour)
	wantVerdict(t, k, r, locker.Acquired)
}

func TestAReadersLockIsClearedUnlessTheReaderLives(t *testing.T) {
	k, reader := newLocker(t), sleeper(t)
	wantVerdict(t, k, read(reader), locker.Acquired)
	lock := atom.File{Kind: atom.ReaderLock, Name: motdFiles, Number: reader.PID}
	if err := k.Clear(lock); err == nil {
		t.Fatal("the lock of a living reader was cleared")
	}
	end(t, reader)
	if err := k.Clear(lock); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(k.Dir.Path(lock.String())); !os.IsNotExist(err) {
		t.Errorf("the lock is still there: %v", err)
	}
}
