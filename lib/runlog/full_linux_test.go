package runlog

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A small file system of its own, which fills up and becomes read only.
func TestFullDiskTearsOneLine(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "small")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("runlog-test", dir, "tmpfs", 0, "size=64k,mode=0700"); err != nil {
		t.Skipf("cannot mount a tmpfs: %v", err)
	}
	defer func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	log := &Log{Dir: dir, Host: testHost}
	written := 0
	var err error
	for ; err == nil && written < 10000; written++ {
		err = log.Append(Event{Kind: Acquire, Operand: strings.Repeat("x", 100)})
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("after %d lines: %v, want ENOSPC", written, err)
	}
	log.Max = 10 // the turned-over file takes all the room: the next line has none
	if err := log.Append(Event{Kind: Acquire, Operand: "lost"}); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("error %v, want ENOSPC", err)
	}
	if err := os.Truncate(olderOf(dir), 100); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, log, "again")
	last := ""
	for e, err := range Read(dir, testHost) {
		var damaged *DamagedLine
		if err != nil && !errors.As(err, &damaged) {
			t.Fatal(err)
		}
		last = e.Operand
	}
	if last != "again" {
		t.Errorf("last line is %q, want again", last)
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if err := log.Append(Event{Kind: Acquire}); !errors.Is(err, unix.EROFS) {
		t.Errorf("read only: error %v, want EROFS", err)
	}
}
