package fault

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// disk is a small file system of its own with a lock directory in it.
type disk struct {
	t          testing.TB
	mount, dir string
}

const diskOptions = "size=64k,mode=0700"

func newDisk(t testing.TB) disk {
	t.Helper()
	need.Root(t)
	mount := t.TempDir()
	if err := unix.Mount("tmpfs", mount, "tmpfs", 0, diskOptions); err != nil {
		need.Skip(t, "mount: "+err.Error())
	}
	t.Cleanup(func() {
		if err := unix.Unmount(mount, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	d := disk{t, mount, filepath.Join(mount, "locks")}
	if err := os.Mkdir(d.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return d
}

// newCoarseDisk makes a disk that keeps times in whole seconds: ext4 with the inodes of ext3.
func newCoarseDisk(t testing.TB) disk {
	t.Helper()
	need.Root(t)
	need.Tools(t, "mkfs.ext4", "mount", "umount")
	image := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 4<<20); err != nil {
		t.Fatal(err)
	}
	if r := (helper.Command{Args: []string{"mkfs.ext4", "-q", "-I", "128", image}}).Run(t); r.Status != 0 {
		t.Fatal(r.Err)
	}
	mount := t.TempDir()
	if r := (helper.Command{Args: []string{"mount", "-o", "loop", image, mount}}).Run(t); r.Status != 0 {
		need.Skip(t, "mount: "+r.Err)
	}
	t.Cleanup(func() {
		if r := (helper.Command{Args: []string{"umount", "--lazy", mount}}).Run(t); r.Status != 0 {
			t.Error(r.Err)
		}
	})
	d := disk{t, mount, filepath.Join(mount, "locks")}
	if err := os.Mkdir(d.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return d
}

// fill writes until the disk is full.
func (d disk) fill() {
	d.t.Helper()
	err := os.WriteFile(filepath.Join(d.mount, "ballast"), make([]byte, 1<<20), 0o600)
	if err == nil {
		d.t.Fatal("the file system took more than it has")
	}
}

func (d disk) empty() {
	d.t.Helper()
	if err := os.Remove(filepath.Join(d.mount, "ballast")); err != nil {
		d.t.Fatal(err)
	}
}

func (d disk) remount(flags uintptr) {
	d.t.Helper()
	var err error
	helper.Eventually(d.t, "no file is open for writing", func() bool {
		err = unix.Mount("", d.mount, "", unix.MS_REMOUNT|flags, diskOptions)
		return !errors.Is(err, unix.EBUSY)
	})
	if err != nil {
		d.t.Fatal(err)
	}
}

// run runs `adlock run` with options and a job.
func (d disk) run(words ...string) helper.Result {
	d.t.Helper()
	args := append([]string{helper.Binary(d.t), "run", "--program", "p", "--host", "h", "--operand", "x"}, words...)
	return helper.Command{Args: args, Env: []string{"ADLOCK_DIR=" + d.dir}}.Run(d.t)
}

// files lists the names in the lock directory.
func (d disk) files() string {
	d.t.Helper()
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		d.t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return strings.Join(names, " ")
}

func (d disk) want(r helper.Result, status int, words string) {
	d.t.Helper()
	if r.Status != status || !strings.HasPrefix(r.Err, "adlock: ") || strings.Count(r.Err, "\n") != 1 || !strings.Contains(r.Err, words) {
		d.t.Errorf("status %d, want %d; said, want one line with %q:\n%s", r.Status, status, words, r.Err)
	}
}

const noSpace = "no space left on device"

func TestOnAFullFileSystemNoJobRunsAndNothingIsLeftBehind(t *testing.T) {
	d := newDisk(t)
	d.fill()
	r := d.run("--", "echo", "ran")
	d.want(r, fault.StatusIO, noSpace)
	if r.Out != "" {
		t.Errorf("the job ran: %s", r.Out)
	}
	if files := d.files(); strings.Contains(files, "lock.") || strings.Contains(files, "temp.") {
		t.Errorf("left behind: %s", files)
	}
	d.empty()
	if r := d.run("--", "echo", "ran"); r.Status != 0 || r.Out != "ran\n" || r.Err != "" {
		t.Errorf("once there is room: %+v", r)
	}
}

func TestAFileSystemThatFillsUpUnderAJobDoesNotChangeItsStatus(t *testing.T) {
	d := newDisk(t)
	ballast := filepath.Join(d.mount, "ballast")
	r := d.run("--", "sh", "-c", "head -c 1000000 /dev/zero >"+ballast+" 2>/dev/null; exit 3")
	if r.Status != 3 {
		t.Errorf("status %d: %s", r.Status, r.Err)
	}
	if files := d.files(); strings.Contains(files, "lock.") {
		t.Errorf("the lock is still there: %s", files)
	}
	d.empty()
	if r := d.run("--if-elapsed", "1h", "--", "true"); r.Status != fault.StatusDenied {
		t.Errorf("the run was not stamped: a newcomer ended with %d: %s", r.Status, r.Err)
	}
}

func TestOnAFullFileSystemATooEarlyNewcomerIsStillDenied(t *testing.T) {
	d := newDisk(t)
	if r := d.run("--", "true"); r.Status != 0 {
		t.Fatalf("%+v", r)
	}
	d.fill()
	if r := d.run("--if-elapsed", "1h", "--", "true"); r.Status != fault.StatusDenied {
		t.Errorf("%+v", r)
	}
}

func TestOnAReadOnlyFileSystemNoJobRuns(t *testing.T) {
	d := newDisk(t)
	if r := d.run("--", "true"); r.Status != 0 {
		t.Fatalf("%+v", r)
	}
	d.remount(unix.MS_RDONLY)
	r := d.run("--", "echo", "ran")
	d.want(r, fault.StatusCannotCreate, "read-only file system")
	if r.Out != "" {
		t.Errorf("the job ran: %s", r.Out)
	}
	d.remount(0)
	if r := d.run("--", "echo", "ran"); r.Status != 0 || r.Out != "ran\n" {
		t.Errorf("once it can be written: %+v", r)
	}
}

func TestALockHeldWhenTheFileSystemGoesReadOnlyIsReclaimedLater(t *testing.T) {
	d := newDisk(t)
	gate := filepath.Join(t.TempDir(), "gate")
	if err := unix.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	opener, err := os.OpenFile(gate, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer opener.Close()
	args := []string{helper.Binary(t), "run", "--program", "p", "--host", "h", "--operand", "x", "--", "sh", "-c", "echo inside; read -r x <" + gate + "; exit 3"}
	owner := helper.Command{Args: args, Env: []string{"ADLOCK_DIR=" + d.dir}}.Start(t)
	helper.Eventually(t, "the job is inside", func() bool { return strings.Contains(owner.Output(), "inside\n") })
	d.remount(unix.MS_RDONLY)
	if r := d.run("--", "echo", "ran"); r.Status == 0 || r.Out != "" {
		t.Errorf("beside the owner: %+v", r)
	}
	if _, err := opener.WriteString("\n"); err != nil {
		t.Fatal(err)
	}
	if status := owner.Wait(t); status != 3 || !strings.Contains(owner.Output(), "read-only file system") {
		t.Errorf("status %d, said: %s", status, owner.Output())
	}
	d.remount(0)
	if r := d.run("--", "echo", "ran"); r.Status != 0 || r.Out != "ran\n" {
		t.Errorf("once it can be written: %+v", r)
	}
}

// A stamp in whole seconds lies up to a second before the completion.
func TestWhereTimesAreWholeSecondsNoRunStartsTooEarly(t *testing.T) {
	t.Parallel()
	d := newCoarseDisk(t)
	var last time.Time
	for range 8 {
		r := d.run("--if-elapsed=1s", "--wait=20s", "--wait-elapsed", "--", "date", "+%s.%N")
		seconds, err := strconv.ParseFloat(strings.TrimSpace(r.Out), 64)
		if r.Status != 0 || err != nil {
			t.Fatalf("%+v: %v", r, err)
		}
		start := time.UnixMicro(int64(seconds * 1e6))
		if apart := start.Sub(last); apart < time.Second {
			t.Errorf("it started %v after the start before", apart)
		}
		last = start
	}
}
