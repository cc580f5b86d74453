package lockfile

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/test/support/must"
)

// member is a process as read back from a record: of the record's boot.
func member(pid int) process.Identity {
	return process.Identity{PID: pid, Start: 100, Inode: 7, SID: 5, PIDNS: 1, TimeNS: 2, Boot: "b", Machine: "m"}
}

func guardedLock(t *testing.T) (*Dir, *Active) {
	t.Helper()
	d := lockedDir(t)
	a := active(t, d)
	must.Do(t, a.Guard(0))
	return d, a
}

func TestAppendingToALockKeepsItsMtimeAndAddsNoProcessTwice(t *testing.T) {
	d := newDir(t)
	a, then := oldLock(t, d)
	must.Do(t, a.AppendCommand(member(20)))
	size := a.st.Size
	if must.Do(t, a.AppendCommand(member(20))); a.st.Size != size {
		t.Error("the command was added twice")
	}
	must.Do(t, a.AppendSurvivors(nil))
	must.Do(t, a.AppendSurvivors([]process.Identity{a.Record.Owner, member(21), member(22), member(21)}))
	must.Do(t, a.AppendSurvivors([]process.Identity{member(20), member(22), member(23), member(4711)}))
	if text := string(must.Get(os.ReadFile(d.Path("lock.x")))(t)); !strings.HasSuffix(text, "survivor.3=23 100 7 5 1 2\nsurvivor.4=4711 100 7 5 1 2\n") {
		t.Error(text)
	}
	again := active(t, d)
	want := record.Appended{Command: member(20), Survivors: []process.Identity{member(21), member(22), member(23), member(4711)}}
	if again.Content != record.Full || !reflect.DeepEqual(again.Appended, want) || !reflect.DeepEqual(a.Appended, want) {
		t.Errorf("got  %+v\nand  %+v\nwant %+v", again.Appended, a.Appended, want)
	}
	if !again.Modified().Equal(then) {
		t.Errorf("the lock is as old as %v now", again.Modified())
	}
}

// oldLock is a guarded lock, an hour old.
func oldLock(t *testing.T, d *Dir) (*Active, time.Time) {
	t.Helper()
	put(t, d, fullRecord())
	then := time.Now().Add(-time.Hour).Truncate(time.Second)
	must.Do(t, os.Chtimes(d.Path("lock.x"), then, then))
	a := active(t, d)
	must.Do(t, a.Guard(0))
	return a, then
}

func TestAnUnfinishedLineIsIgnoredAndTheNextAppendRemovesIt(t *testing.T) {
	whole, line := string(fullRecord().Bytes())+"survivor.1=20 100 7 5 1 2\n", "survivor.2=21 100 7 5 1 2"
	for n := range len(line) {
		d := newDir(t)
		must.Do(t, os.WriteFile(d.Path("lock.x"), []byte(whole+line[:n]), 0o600))
		a := active(t, d)
		if a.Content != record.Full || len(a.Appended.Survivors) != 1 {
			t.Fatalf("%d bytes of a line: content %d, %+v", n, a.Content, a.Appended)
		}
		must.Do(t, a.Guard(0))
		must.Do(t, a.AppendSurvivors([]process.Identity{member(30)}))
		again := active(t, d)
		if s := again.Appended.Survivors; again.Content != record.Full || len(s) != 2 || s[1].PID != 30 {
			t.Fatalf("after %d bytes: %+v", n, again.Appended)
		}
	}
}

func TestALockNeverExceeds64KiBAndNotesMissingSurvivorsOnce(t *testing.T) {
	d, a := guardedLock(t)
	var all []process.Identity
	for pid := 100_000; pid < 103_000; pid++ {
		all = append(all, member(pid))
	}
	must.Do(t, a.AppendSurvivors(all[:500]))
	must.Do(t, a.AppendSurvivors(all))
	must.Do(t, a.AppendSurvivors(all))
	must.Do(t, a.AppendSurvivors([]process.Identity{member(1), member(2)})) // of a later ending
	again := active(t, d)
	if job := again.Job(); !a.Appended.Uncounted || !job.Uncounted || len(job.Survivors) != 502 || again.st.Size > record.Longest {
		t.Errorf("%d bytes, %d survivors, uncounted %v", again.st.Size, len(job.Survivors), job.Uncounted)
	}
	content := must.Get(os.ReadFile(d.Path("lock.x")))(t)
	if n := strings.Count(string(content), record.ManySurvivors); n != 1 {
		t.Errorf("said %d times", n)
	}
}

// The limit on the file size stands for a full disk: the kernel writes what fits.
func TestAFailedAppendLeavesTheLockUnchanged(t *testing.T) {
	d, a := guardedLock(t)
	var err error
	limitedTo(t, uint64(a.st.Size)+10, func() { err = a.AppendSurvivors([]process.Identity{member(20)}) })
	if err == nil {
		t.Fatal("it fits")
	}
	again := active(t, d)
	size := int64(len(again.Record.Bytes()))
	if again.Content != record.Full || len(again.Appended.Survivors) != 0 || again.st.Size != size {
		t.Errorf("%+v, %d bytes (%v)", again.Appended, again.st.Size, err)
	}
	must.Do(t, a.AppendSurvivors([]process.Identity{member(20)}))
}

func TestWithdrawRemovesOnlyWhatWasAppendedSinceTheGuard(t *testing.T) {
	d := newDir(t)
	a, then := oldLock(t, d)
	must.Do(t, a.AppendSurvivors([]process.Identity{member(20)}))
	must.Do(t, a.Guard(0)) // again, as it is now
	size, want := a.whole, record.Appended{Survivors: []process.Identity{member(20)}}
	must.Do(t, a.AppendSurvivors([]process.Identity{member(21), member(22)}))
	must.Do(t, a.AppendSurvivors([]process.Identity{member(23)}))
	for range 2 { // the second call has nothing to take back
		must.Do(t, a.Withdraw())
		again := active(t, d)
		if !reflect.DeepEqual(again.Appended, want) || !reflect.DeepEqual(a.Appended, want) {
			t.Errorf("got  %+v\nand  %+v\nwant %+v", again.Appended, a.Appended, want)
		}
		if again.whole != size || a.whole != size || !again.Modified().Equal(then) {
			t.Errorf("%d and %d bytes, want %d; as old as %v", again.whole, a.whole, size, again.Modified())
		}
	}
	must.Do(t, a.AppendSurvivors([]process.Identity{member(24)}))
	if again := active(t, d); len(again.Appended.Survivors) != 2 {
		t.Errorf("got %+v", again.Appended)
	}
}
