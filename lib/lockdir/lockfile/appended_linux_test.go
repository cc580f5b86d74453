package lockfile

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/lib/record"
)

// member is a process as read back from a record: of the record's boot.
func member(pid int) process.Identity {
	return process.Identity{PID: pid, Start: 100, Inode: 7, SID: 5, PIDNS: 1, TimeNS: 2, Boot: "b", Machine: "m"}
}

func guardedLock(t *testing.T, d *Dir) *Active {
	t.Helper()
	put(t, d, fullRecord())
	a := active(t, d)
	must(t, a.Guard(0))
	return a
}

func TestWhatIsAppendedIsReadBackAndTheMtimeStays(t *testing.T) {
	d := newDir(t)
	put(t, d, fullRecord())
	then := time.Now().Add(-time.Hour).Truncate(time.Second)
	must(t, os.Chtimes(d.Path("lock.x"), then, then))
	a := active(t, d)
	must(t, a.Guard(0))
	must(t, a.AppendCommand(member(20)))
	size := a.st.Size
	if must(t, a.AppendCommand(member(20))); a.st.Size != size {
		t.Error("the command was added twice")
	}
	must(t, a.AppendSurvivors([]process.Identity{member(21), member(22)}))
	must(t, a.AppendSurvivors([]process.Identity{member(20), member(22), member(23), member(4711)}))
	again := active(t, d)
	want := record.Appended{Command: member(20), Survivors: []process.Identity{member(21), member(22), member(23), member(4711)}}
	if again.Content != record.Full || !reflect.DeepEqual(again.Appended, want) || !reflect.DeepEqual(a.Appended, want) {
		t.Errorf("got  %+v\nand  %+v\nwant %+v", again.Appended, a.Appended, want)
	}
	if !again.Modified().Equal(then) {
		t.Errorf("the lock is as old as %v now", again.Modified())
	}
}

func TestAnUnfinishedLineIsIgnoredAndGoesWithTheNextAppend(t *testing.T) {
	whole := string(fullRecord().Bytes()) + "survivor.1=20 100 7 5 1 2\n"
	for n := range len("survivor.2=21 100 7 5 1 2") {
		d := newDir(t)
		must(t, os.WriteFile(d.Path("lock.x"), []byte(whole+"survivor.2=21 100 7 5 1 2"[:n]), 0o600))
		a := active(t, d)
		if a.Content != record.Full || len(a.Appended.Survivors) != 1 {
			t.Fatalf("%d bytes of a line: content %d, %+v", n, a.Content, a.Appended)
		}
		must(t, a.Guard(0))
		must(t, a.AppendSurvivors([]process.Identity{member(30)}))
		if again := active(t, d); again.Content != record.Full || len(again.Appended.Survivors) != 2 || again.Appended.Survivors[1].PID != 30 {
			t.Fatalf("after %d bytes: %+v", n, again.Appended)
		}
	}
}

func TestAForeignLineBehindTheRecordIsDamage(t *testing.T) {
	for _, line := range []string{"token=abc", "survivor.1=1", "survivor.1=0 1 1 1 1 1", "survivor.1=a b c d e f", "command=", "", "x"} {
		if _, content := record.Parse(append(fullRecord().Bytes(), line+"\n"...)); content != record.Damaged {
			t.Errorf("%q: content %d", line, content)
		}
	}
}

func TestALockNeverOutgrows64KiB(t *testing.T) {
	d := newDir(t)
	a := guardedLock(t, d)
	var all []process.Identity
	for pid := 100_000; pid < 103_000; pid++ {
		all = append(all, member(pid))
	}
	must(t, a.AppendSurvivors(all[:500]))
	must(t, a.AppendSurvivors(all))
	must(t, a.AppendSurvivors(all))
	again := active(t, d)
	if !again.Appended.Uncounted || len(again.Appended.Survivors) != 500 || again.st.Size > record.Longest {
		t.Errorf("%d bytes, %d survivors, uncounted %v", again.st.Size, len(again.Appended.Survivors), again.Appended.Uncounted)
	}
	if job := again.Job(); !job.Uncounted || len(job.Survivors) != 500 {
		t.Error("the job does not say so")
	}
}

// The limit on the file size stands for a full disk: the kernel writes what fits.
func TestAnAppendThatFailsLeavesTheLockAsItWas(t *testing.T) {
	d := newDir(t)
	a := guardedLock(t, d)
	var before syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before))
	limited := before
	limited.Cur = uint64(a.st.Size) + 10
	must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limited))
	err := a.AppendSurvivors([]process.Identity{member(20)})
	must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before))
	if err == nil {
		t.Fatal("it fits")
	}
	if again := active(t, d); again.Content != record.Full || len(again.Appended.Survivors) != 0 || again.st.Size != int64(len(again.Record.Bytes())) {
		t.Errorf("%+v, %d bytes (%v)", again.Appended, again.st.Size, err)
	}
	must(t, a.AppendSurvivors([]process.Identity{member(20)}))
}

func TestTheGuardRefusesALockWithAnotherToken(t *testing.T) {
	d := newDir(t)
	put(t, d, fullRecord())
	a := active(t, d)
	must(t, os.Remove(d.Path("lock.x")))
	put(t, d, fullRecord())
	if err := a.Guard(0); !errors.Is(err, locker.ErrLost) {
		t.Errorf("got %v", err)
	}
}

func TestEveryTailOfARecordIsReadOrIsDamage(t *testing.T) {
	head := fullRecord()
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SampledFrom([]string{"survivor.1=", "survivor=many\n", "command=", "20 100 7 5 1 2\n", "20", " ", "\n", "=", "x"})
		tail := strings.Join(rapid.SliceOfN(line, 0, 8).Draw(t, "tail"), "")
		got, content := record.Parse(append(head.Bytes(), tail...))
		if content == record.Full && got != head || content != record.Full && (content != record.Damaged || got != (record.Record{})) {
			t.Fatalf("%q: content %d", tail, content)
		}
	})
}

func TestWhatWasAppendedCanBeTakenBack(t *testing.T) {
	d := newDir(t)
	put(t, d, fullRecord())
	then := time.Now().Add(-time.Hour).Truncate(time.Second)
	must(t, os.Chtimes(d.Path("lock.x"), then, then))
	a := active(t, d)
	must(t, a.Guard(0))
	must(t, a.AppendSurvivors([]process.Identity{member(20)}))
	must(t, a.Guard(0)) // again, as it is now
	size := a.whole
	must(t, a.AppendSurvivors([]process.Identity{member(21), member(22)}))
	must(t, a.AppendSurvivors([]process.Identity{member(23)}))
	for range 2 { // the second call has nothing to take back
		must(t, a.Withdraw())
		again := active(t, d)
		if want := (record.Appended{Survivors: []process.Identity{member(20)}}); !reflect.DeepEqual(again.Appended, want) || !reflect.DeepEqual(a.Appended, want) {
			t.Errorf("got  %+v\nand  %+v\nwant %+v", again.Appended, a.Appended, want)
		}
		if again.whole != size || a.whole != size || !again.Modified().Equal(then) {
			t.Errorf("%d and %d bytes, want %d; as old as %v", again.whole, a.whole, size, again.Modified())
		}
	}
	must(t, a.AppendSurvivors([]process.Identity{member(24)}))
	if again := active(t, d); len(again.Appended.Survivors) != 2 {
		t.Errorf("got %+v", again.Appended)
	}
}
