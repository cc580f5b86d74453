package runlog

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/test/support/must"
	"adlock/test/support/need"
)

func TestARunlogContinuesAfterAFullDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "small")
	must.Do(t, os.Mkdir(dir, 0o700))
	if err := unix.Mount("runlog-test", dir, "tmpfs", 0, "size=64k,mode=0700"); err != nil {
		need.Skip(t, "cannot mount a tmpfs: ", err)
	}
	defer func() { must.Do(t, unix.Unmount(dir, 0)) }()
	log := &Log{Dir: dir, Host: testHost}
	written := 0
	var err error
	for ; err == nil && written < 10000; written++ {
		err = log.Append(Event{Kind: Acquire, Operand: strings.Repeat("x", 100)})
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("after %d lines: %v, want ENOSPC", written, err)
	}
	log.Max = 10 // the rotated file takes all the room: the next line has none
	if err := log.Append(Event{Kind: Acquire, Operand: "lost"}); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("error %v, want ENOSPC", err)
	}
	must.Do(t, os.Truncate(olderOf(dir), 100))
	mustAppend(t, log, "again")
	if got := operands(t, dir); got[len(got)-1] != "again" {
		t.Errorf("last line is %q, want again", got[len(got)-1])
	}
	must.Do(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	if err := log.Append(Event{Kind: Acquire}); !errors.Is(err, unix.EROFS) {
		t.Errorf("read only: error %v, want EROFS", err)
	}
}
