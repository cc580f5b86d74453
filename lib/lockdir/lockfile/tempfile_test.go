package lockfile

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"adlock/lib/locker"
	"adlock/lib/record"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// eachWay runs a test with both ways of making a temporary file.
func eachWay(t *testing.T, test func(t *testing.T, d *Dir, temp func() *TempFile)) {
	for claim, make := range map[string]func(*Dir) (*TempFile, error){
		"without a name":    (*Dir).nameless,
		"with a name (BSD)": (*Dir).temporary,
	} {
		t.Run(claim, func(t *testing.T) {
			d := newDir(t)
			test(t, d, func() *TempFile {
				t.Helper()
				temp := must.Get(make(d))(t)
				if temp == nil {
					need.Skip(t, "this file system has no O_TMPFILE")
				}
				t.Cleanup(temp.dropTemporary)
				must.Do(t, temp.fill(func(uint64) []byte { return fullRecord().Bytes() }))
				return temp
			})
		})
	}
}

func TestALinkedTemporaryFileIsPrivateAndReplacesNoOther(t *testing.T) {
	eachWay(t, func(t *testing.T, d *Dir, temp func() *TempFile) {
		defer syscall.Umask(syscall.Umask(0o777))
		first, second := temp(), temp()
		defer first.Close()
		must.Do(t, first.Link("lock.x"))
		if err := second.Link("lock.x"); !errors.Is(err, fs.ErrExist) {
			t.Fatalf("two files have one name: %v", err)
		}
		second.Discard()
		mustHold(t, d, "lock.x")
		info := must.Get(os.Stat(d.Path("lock.x")))(t)
		if info.Mode() != 0o600 || info.Size() == 0 || info.Sys().(*syscall.Stat_t).Nlink != 1 {
			t.Errorf("mode %v, %d bytes, %d links", info.Mode(), info.Size(), info.Sys().(*syscall.Stat_t).Nlink)
		}
	})
}

func TestWithdrawLeavesANameThatLeadsToAnotherFile(t *testing.T) {
	eachWay(t, func(t *testing.T, d *Dir, temp func() *TempFile) {
		mine, other := temp(), temp()
		defer mine.Close()
		defer other.Close()
		must.Do(t, mine.Link("lock.x"))
		if mine.Named() || other.Named() != (other.temporary != "") {
			t.Error("which of them have temporary names is wrong")
		}
		must.Do(t, other.Replace("lock.x"))
		must.Do(t, mine.Withdraw())
		mustHold(t, d, "lock.x")
		must.Do(t, other.Withdraw())
		mustHold(t, d)
		must.Do(t, other.Withdraw()) // twice does nothing
	})
}

func TestATemporaryFileIsGuardedUntilItIsClosed(t *testing.T) {
	eachWay(t, func(t *testing.T, d *Dir, temp func() *TempFile) {
		mine := temp()
		must.Do(t, mine.Link("lock.x"))
		a := active(t, d)
		if err := a.Guard(0); !errors.Is(err, locker.ErrGuarded) {
			t.Fatalf("got %v", err)
		}
		must.Do(t, mine.Close())
		must.Do(t, a.Guard(0))
	})
}

func TestTouchReturnsTheFileSystemsTime(t *testing.T) {
	eachWay(t, func(t *testing.T, d *Dir, temp func() *TempFile) {
		mine := temp()
		defer mine.Discard()
		must.Do(t, mine.setModified(time.Time{}))
		if now, err := mine.Touch(); err != nil || time.Since(now).Abs() > time.Minute {
			t.Errorf("%v, %v", now, err)
		}
	})
}

func TestSweepRemovesOnlyOldOrLinkedTemporaryFiles(t *testing.T) {
	d := newDir(t)
	name := func() string { return "temp." + record.NewToken() }
	young, directory, link, fifo := name(), name(), name(), name()
	plain := []string{"temp.notes", "temp.", "lock.x", "last.x", "temp." + strings.Repeat("z", 32)}
	now := time.Now().Truncate(time.Second)
	for _, file := range append(plain, name(), young) {
		must.Do(t, os.WriteFile(d.Path(file), nil, 0o600))
		must.Do(t, os.Chtimes(d.Path(file), time.Time{}, now.Add(-sweepAge)))
	}
	must.Do(t, os.Chtimes(d.Path(young), time.Time{}, now.Add(time.Second-sweepAge)))
	must.Do(t, os.Link(d.Path("last.x"), d.Path(name()))) // of two names: swept whatever its age
	must.Do(t, os.Chtimes(d.Path("last.x"), time.Time{}, now))
	must.Do(t, os.Mkdir(d.Path(directory), 0o700))
	must.Do(t, os.Symlink("/etc/passwd", d.Path(link)))
	must.Do(t, syscall.Mkfifo(d.Path(fifo), 0o600))
	must.Do(t, d.Sweep(now))
	mustHold(t, d, append(plain, young, directory, link, fifo)...)
	must.Do(t, os.Remove(d.Path(young)))
	must.Do(t, d.Sweep(time.Now().Add(time.Hour)))
	mustHold(t, d, append(plain, directory, link, fifo)...)
}

// A last lock in the making has the mtime of the one it replaces, which may be years old: only
// its guard shows that its creator lives.
func TestSweepLeavesAFileThatIsBeingMade(t *testing.T) {
	d := newDir(t)
	temp := must.Get(d.temporary())(t)
	must.Do(t, temp.fill(func(uint64) []byte { return nil }))
	must.Do(t, temp.setModified(time.Time{}))
	must.Do(t, d.Sweep(time.Now()))
	mustHold(t, d, temp.temporary)
	must.Do(t, temp.Close()) // the creator has crashed
	must.Do(t, d.Sweep(time.Now()))
	mustHold(t, d)
}

// mustHold wants these files in the directory and no others.
func mustHold(t *testing.T, d *Dir, want ...string) {
	t.Helper()
	all := must.Get(os.ReadDir(d.path))(t)
	for _, name := range want {
		if !exists(d, name) {
			t.Errorf("%s is gone", name)
		}
	}
	if len(all) != len(want) {
		t.Errorf("the directory holds %q, want %q", all, want)
	}
}
