package lockfile

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/record"
)

func modified(t testing.TB, d *Dir, name string) time.Time {
	t.Helper()
	info, err := os.Stat(d.Path(name))
	must(t, err)
	return info.ModTime()
}

func last(t testing.TB, d *Dir) record.Last {
	t.Helper()
	l, err := d.Last("x")
	must(t, err)
	return l
}

func TestANewLastLockHasNeverCompleted(t *testing.T) {
	d := newDir(t)
	if _, err := d.Last("x"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("got %v", err)
	}
	must(t, d.MakeLast("x", record.Memory{Atom: motd}))
	if l := last(t, d); !l.Completed.IsZero() || l.Memory.Atom != motd {
		t.Errorf("%+v", l)
	}
	if at := modified(t, d, "last.x"); at.UnixNano() != 0 {
		t.Errorf("mtime %v", at)
	}
}

func TestATimeOfWholeSecondsMayLackAlmostASecond(t *testing.T) {
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

func TestALastLockIsStampedAndKeepsItsMemory(t *testing.T) {
	d := newDir(t)
	must(t, d.Stamp("x", record.Memory{Atom: motd})) // it was deleted, or there was none
	before := last(t, d)
	if time.Since(before.Completed).Abs() > time.Minute || before.Memory.Atom != motd {
		t.Errorf("made: %+v", before)
	}
	must(t, d.MakeLast("x", record.Memory{}))
	if after := last(t, d); !after.Completed.Equal(before.Completed) || after.Memory.Atom != motd {
		t.Errorf("made again: %+v became %+v", before, after)
	}
	must(t, os.Chtimes(d.Path("last.x"), time.Unix(0, 0), time.Unix(0, 0)))
	must(t, d.Stamp("x", record.Memory{}))
	if l := last(t, d); time.Since(l.Completed).Abs() > time.Minute || l.Memory.Atom != motd {
		t.Errorf("stamped: %+v", l)
	}
}

func TestRememberingKeepsTheMtimeToTheNanosecondAndForeignLines(t *testing.T) {
	d := newDir(t)
	at := time.Unix(1700000000, 123456789)
	must(t, os.WriteFile(d.Path("last.x"), []byte("runs=7\nmean=3.25\n"), 0o600))
	must(t, os.Chtimes(d.Path("last.x"), at, at))
	l := last(t, d)
	l.Memory.Started = time.Unix(1699999999, 987654321)
	must(t, d.Remember("x", l.Completed, l.Memory))
	if got := modified(t, d, "last.x"); !got.Equal(at) {
		t.Errorf("the mtime %v became %v", at.UnixNano(), got.UnixNano())
	}
	again := last(t, d)
	if text := string(again.Memory.Bytes()); !again.Memory.Started.Equal(l.Memory.Started) || !strings.HasSuffix(text, "\nruns=7\nmean=3.25\n") {
		t.Errorf("%+v: %s", again.Memory, text)
	}
}

func TestRememberingWhatNeverCompletedIsNoCompletion(t *testing.T) {
	d := newDir(t)
	must(t, d.MakeLast("x", record.Memory{}))
	must(t, d.Remember("x", last(t, d).Completed, record.Memory{Started: time.Now()}))
	if l := last(t, d); !l.Completed.IsZero() || l.Memory.Empty() {
		t.Errorf("%+v", l)
	}
}

func TestALastLockWithUnknownContentIsDamagedAndStays(t *testing.T) {
	d := newDir(t)
	for _, content := range []string{"x", "garbage", "no newline=1", "program=\"half\n", "started=yesterday\n", "a=1\na=2\n"} {
		must(t, os.WriteFile(d.Path("last.x"), []byte(content), 0o600))
		if last, err := d.Last("x"); err != nil || !last.Damaged || !last.Completed.IsZero() || !last.Memory.Empty() {
			t.Errorf("%q: %+v, %v", content, last, err)
		}
		if kept, _ := os.ReadFile(d.Path("last.x")); string(kept) != content {
			t.Errorf("%q became %q", content, kept)
		}
	}
}

func TestPruningTwiceIsNoError(t *testing.T) {
	d := newDir(t)
	must(t, d.MakeLast("x", record.Memory{}))
	changed, err := d.LastChanged("x")
	if err != nil || time.Since(changed).Abs() > time.Minute {
		t.Errorf("changed %v, %v", changed, err)
	}
	must(t, d.RemoveLast("x"))
	must(t, d.RemoveLast("x"))
	mustHold(t, d)
}
