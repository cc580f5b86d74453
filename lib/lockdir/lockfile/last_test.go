package lockfile

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/record"
	"adlock/test/support/must"
)

func modified(t testing.TB, d *Dir, name string) time.Time {
	t.Helper()
	info := must.Get(os.Stat(d.Path(name)))(t)
	return info.ModTime()
}

func last(t testing.TB, d *Dir) record.Last {
	t.Helper()
	return must.Get(d.Last("x"))(t)
}

func TestANewLastLockRecordsNoCompletion(t *testing.T) {
	d := newDir(t)
	if _, err := d.Last("x"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("got %v", err)
	}
	must.Do(t, d.MakeLast("x", record.Memory{Atom: motd}))
	if l := last(t, d); !l.Completed.IsZero() || l.Memory.Atom != motd {
		t.Errorf("%+v", l)
	}
	if at := modified(t, d, "last.x"); at.UnixNano() != 0 {
		t.Errorf("mtime %v", at)
	}
}

func TestOnlyFileTimesInWholeSecondsMayBeASecondTooEarly(t *testing.T) {
	whole, fine := unix.Timespec{Sec: 5}, unix.Timespec{Sec: 5, Nsec: 1}
	for _, c := range []struct {
		mtime, ctime unix.Timespec
		want         time.Duration
	}{{whole, whole, time.Second}, {fine, whole, 0}, {whole, fine, 0}, {fine, fine, 0}} {
		if got := cutOff(c.mtime, c.ctime); got != c.want {
			t.Errorf("%v %v: %v", c.mtime, c.ctime, got)
		}
	}
}

func TestStampingALastLockKeepsItsMemory(t *testing.T) {
	d := newDir(t)
	must.Do(t, d.Stamp("x", record.Memory{Atom: motd})) // it was deleted, or there was none
	before := last(t, d)
	if time.Since(before.Completed).Abs() > time.Minute || before.Memory.Atom != motd {
		t.Errorf("made: %+v", before)
	}
	must.Do(t, d.MakeLast("x", record.Memory{}))
	if after := last(t, d); !after.Completed.Equal(before.Completed) || after.Memory.Atom != motd {
		t.Errorf("made again: %+v became %+v", before, after)
	}
	must.Do(t, os.Chtimes(d.Path("last.x"), time.Unix(0, 0), time.Unix(0, 0)))
	must.Do(t, d.Stamp("x", record.Memory{}))
	if l := last(t, d); time.Since(l.Completed).Abs() > time.Minute || l.Memory.Atom != motd {
		t.Errorf("stamped: %+v", l)
	}
}

func TestRememberKeepsTheExactMtimeAndUnknownLines(t *testing.T) {
	d := newDir(t)
	at := time.Unix(1700000000, 123456789)
	must.Do(t, os.WriteFile(d.Path("last.x"), []byte("runs=7\nmean=3.25\n"), 0o600))
	must.Do(t, os.Chtimes(d.Path("last.x"), at, at))
	l := last(t, d)
	l.Memory.Started = time.Unix(1699999999, 987654321)
	must.Do(t, d.Remember("x", l.Completed, l.Memory))
	if got := modified(t, d, "last.x"); !got.Equal(at) {
		t.Errorf("the mtime %v became %v", at.UnixNano(), got.UnixNano())
	}
	again := last(t, d)
	if text := string(again.Memory.Bytes()); !again.Memory.Started.Equal(l.Memory.Started) || !strings.HasSuffix(text, "\nruns=7\nmean=3.25\n") {
		t.Errorf("%+v: %s", again.Memory, text)
	}
}

func TestADamagedLastLockIsReadAsDamagedAndLeftUnchanged(t *testing.T) {
	d := newDir(t)
	for _, content := range []string{"x", "garbage", "no newline=1", "program=\"half\n", "started=yesterday\n", "a=1\na=2\n"} {
		must.Do(t, os.WriteFile(d.Path("last.x"), []byte(content), 0o600))
		if last, err := d.Last("x"); err != nil || !last.Damaged || !last.Completed.IsZero() || len(last.Memory.Bytes()) > 0 {
			t.Errorf("%q: %+v, %v", content, last, err)
		}
		if kept, _ := os.ReadFile(d.Path("last.x")); string(kept) != content {
			t.Errorf("%q became %q", content, kept)
		}
	}
}

func TestRemovingALastLockTwiceIsNoError(t *testing.T) {
	d := newDir(t)
	must.Do(t, d.MakeLast("x", record.Memory{}))
	if changed, err := d.LastChanged("x"); err != nil || time.Since(changed).Abs() > time.Minute {
		t.Errorf("changed %v, %v", changed, err)
	}
	must.Do(t, d.RemoveLast("x"))
	must.Do(t, d.RemoveLast("x"))
	mustHold(t, d)
}

const reads = "p.h.o.x" // a NAME, which has four parts

func TestReadersAreListedOnlyAfterTheAtomWasMarked(t *testing.T) {
	d := newDir(t)
	for _, reader := range []string{"x.17", "x.4711", "x.x", "x.12.x", "x.1x", "x.x1", "y.17"} {
		must.Do(t, os.WriteFile(d.Path("read.p.h.o."+reader), nil, 0o600))
	}
	for _, want := range [][]string{nil, {"read." + reads + ".17", "read." + reads + ".4711"}} {
		readers := must.Get(d.Readers(reads))(t)
		var found []string
		for _, f := range readers {
			found = append(found, f.String())
		}
		if slices.Sort(found); !slices.Equal(found, want) {
			t.Errorf("found %q, want %q", found, want)
		}
		must.Do(t, d.MarkRead(reads)) // the second time it is there
	}
}

func TestTheReadersMarkIsPrivateAndEmptyUnderAnyUmask(t *testing.T) {
	for _, umask := range []int{0, 0o777} {
		d := newDir(t)
		before := syscall.Umask(umask)
		err := d.MarkRead(reads)
		syscall.Umask(before)
		must.Do(t, err)
		if info := must.Get(os.Lstat(d.Path("read." + reads)))(t); info.Mode() != 0o600 || info.Size() != 0 {
			t.Errorf("umask %03o: mode %v, %d bytes", umask, info.Mode(), info.Size())
		}
	}
}

func TestALinkInPlaceOfTheReadersMarkIsRefused(t *testing.T) {
	d, elsewhere := newDir(t), t.TempDir()+"/elsewhere"
	must.Do(t, os.Symlink(elsewhere, d.Path("read."+reads)))
	if err := d.MarkRead(reads); err == nil {
		t.Error("marked")
	}
	if _, err := os.Lstat(elsewhere); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the link was followed: %v", err)
	}
}

func TestReadersChangeTheLastLockOneAtATime(t *testing.T) {
	d := newDir(t)
	must.Do(t, d.MarkRead(reads))
	inside, first := make(chan bool), make(chan error, 1)
	var left atomic.Bool
	go func() {
		first <- d.Marked(reads, func() error { inside <- true; time.Sleep(markWait / 4); left.Store(true); return nil })
	}()
	<-inside
	begun := time.Now()
	must.Do(t, d.Marked(reads, func() error {
		if waited := time.Since(begun); !left.Load() && waited < markWait {
			t.Errorf("two at once after %v", waited)
		}
		return nil
	}))
	must.Do(t, <-first)
}

func TestAStoppedReaderBlocksOthersOnlyBriefly(t *testing.T) {
	d := newDir(t)
	must.Do(t, d.MarkRead(reads))
	var begun time.Time
	must.Do(t, d.Marked(reads, func() error {
		begun = time.Now()
		return d.Marked(reads, func() error { return nil })
	}))
	if waited := time.Since(begun); waited < 200*time.Millisecond || waited > 90*time.Second {
		t.Errorf("waited %v", waited)
	}
}
