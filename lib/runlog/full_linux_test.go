package runlog

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/test/support/must"
	"adlock/test/support/need"
)

// The test mounts a small file system, fills it up, and makes it read-only.
func TestFullDiskTearsOneLine(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "small")
	must.Do(t, os.Mkdir(dir, 0o700))
	if err := unix.Mount("runlog-test", dir, "tmpfs", 0, "size=64k,mode=0700"); err != nil {
		need.Skip(t, "cannot mount a tmpfs: ", err)
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
	log.Max = 10 // the rotated file takes all the room: the next line has none
	if err := log.Append(Event{Kind: Acquire, Operand: "lost"}); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("error %v, want ENOSPC", err)
	}
	must.Do(t, os.Truncate(olderOf(dir), 100))
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
	must.Do(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	if err := log.Append(Event{Kind: Acquire}); !errors.Is(err, unix.EROFS) {
		t.Errorf("read only: error %v, want EROFS", err)
	}
}

func TestReadOnlyDirectoryIsAnError(t *testing.T) {
	dir := folderOf(t)
	must.Do(t, os.Chmod(dir, 0o555))
	withoutPrivilege(t, dir)
	if err := (&Log{Dir: dir, Host: testHost}).Append(Event{Kind: Acquire}); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("error %v, want EACCES", err)
	}
}

// withoutPrivilege makes the rest of root's test access files as an unprivileged user, which may enter
// dir: setfsuid(2) takes root's extra rights away.
func withoutPrivilege(t *testing.T, dir string) {
	if os.Geteuid() != 0 {
		return
	}
	must.Do(t, os.Chmod(filepath.Dir(dir), 0o755))
	runtime.LockOSThread() // it belongs to the thread
	const nobody = 65534
	must.Get(unix.SetfsuidRetUid(nobody))(t)
	t.Cleanup(func() {
		_, _ = unix.SetfsuidRetUid(0) // setfsuid(2) reports no error
		runtime.UnlockOSThread()
	})
}
