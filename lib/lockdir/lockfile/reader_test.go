package lockfile

import (
	"adlock/lib/atom"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const reads = "p.h.o.x" // a NAME, which has four parts

func TestReadersAreListedOnceTheAtomIsMarked(t *testing.T) {
	d := newDir(t)
	for _, pid := range []string{"17", "4711", "x", "12.x", "1x", "x1"} {
		must(t, os.WriteFile(d.Path("read."+reads+"."+pid), nil, 0o600))
	}
	wantReaders(t, d, reads)
	must(t, d.MarkRead(reads))
	must(t, d.MarkRead(reads)) // twice is no error
	wantReaders(t, d, reads, "read."+reads+".17", "read."+reads+".4711")
}

func wantReaders(t *testing.T, d *Dir, name atom.Name, want ...string) {
	t.Helper()
	readers, err := d.Readers(name)
	must(t, err)
	var found []string
	for _, f := range readers {
		found = append(found, f.String())
	}
	slices.Sort(found)
	slices.Sort(want)
	if !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
}

func TestTheMarkIsPrivateAndEmptyWhateverTheUmask(t *testing.T) {
	for _, umask := range []int{0, 0o777} {
		d := newDir(t)
		before := syscall.Umask(umask)
		err := d.MarkRead(reads)
		syscall.Umask(before)
		must(t, err)
		info, err := os.Lstat(d.Path("read." + reads))
		must(t, err)
		if info.Mode() != 0o600 || info.Size() != 0 {
			t.Errorf("umask %03o: mode %v, %d bytes", umask, info.Mode(), info.Size())
		}
	}
}

func TestALinkIsNoMark(t *testing.T) {
	d, elsewhere := newDir(t), t.TempDir()+"/elsewhere"
	must(t, os.Symlink(elsewhere, d.Path("read."+reads)))
	if err := d.MarkRead(reads); err == nil {
		t.Error("marked")
	}
	if _, err := os.Lstat(elsewhere); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the link was followed: %v", err)
	}
}

func TestReadersTakeTurnsAtTheMark(t *testing.T) {
	d := newDir(t)
	must(t, d.MarkRead(reads))
	inside, leave := make(chan bool), make(chan bool)
	first := make(chan error, 1)
	go func() {
		first <- d.Marked(reads, func() error { inside <- true; <-leave; return nil })
	}()
	<-inside
	var left atomic.Bool
	begun := time.Now()
	go func() { left.Store(true); leave <- true }()
	must(t, d.Marked(reads, func() error {
		if waited := time.Since(begun); !left.Load() && waited < markWait {
			t.Errorf("two at once after %v", waited)
		}
		return nil
	}))
	must(t, <-first)
}

func TestAStoppedReaderBlocksOthersOnlyBriefly(t *testing.T) {
	d := newDir(t)
	must(t, d.MarkRead(reads))
	var begun time.Time
	must(t, d.Marked(reads, func() error {
		begun = time.Now()
		return d.Marked(reads, func() error { return nil })
	}))
	if waited := time.Since(begun); waited < 200*time.Millisecond || waited > 90*time.Second {
		t.Errorf("waited %v", waited)
	}
}

func TestReadersAreFoundWhateverTheirFilesAreCalled(t *testing.T) {
	d := newDir(t)
	part := func(c string) string { return strings.Repeat(c, 60) }
	long := atom.Name(part("p") + "." + part("h") + "." + part("o") + "." + part("x"))
	want := []string{long.ReaderLock(7), long.ReaderLock(4194304)}
	others := []string{long.ReadersMark(), long.ReadersMark() + ".x", long.ActiveLock(), "r.a.b", atom.Name("a.b.c.d").ReaderLock(7)}
	for _, file := range append(others, want...) {
		must(t, os.WriteFile(d.Path(file), nil, 0o600))
	}
	wantReaders(t, d, long, want...)
}
