package intercept

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/test/support/check"
)

func TestOneCallFailsAsInjectedAndTheOthersSucceed(t *testing.T) {
	dir := t.TempDir()
	var got []error
	n := 0
	Run(t, func() {
		for _, name := range []string{"a", "b", "c"} {
			got = append(got, unix.Mkdirat(unix.AT_FDCWD, filepath.Join(dir, name), 0o700))
		}
	}, func(Call) unix.Errno {
		if n++; n == 2 {
			return unix.EDQUOT
		}
		return 0
	}, unix.SYS_MKDIRAT)
	check.Slices(t, "got", got, []error{nil, unix.EDQUOT, nil})
	if _, err := os.Stat(filepath.Join(dir, "b")); !os.IsNotExist(err) {
		t.Errorf("the call that failed was made: %v", err)
	}
}

// A signal that the runtime sends for a garbage collection must not make one call look like two.
func TestEachCallIsReportedOnce(t *testing.T) {
	dir, told := t.TempDir(), 0
	const calls = 100
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	}()
	defer close(stop)
	Run(t, func() {
		for range calls {
			if err := unix.Unlinkat(unix.AT_FDCWD, dir+"/none", 0); err != unix.ENOENT {
				t.Errorf("got %v", err)
			}
		}
	}, func(Call) unix.Errno { told++; return 0 }, unix.SYS_UNLINKAT)
	check.Equal(t, "calls told", told, calls)
}

func TestCallsOfOtherThreadsAreNotIntercepted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	Run(t, func() {
		if err := unix.Mkdirat(unix.AT_FDCWD, path, 0); err != unix.EIO {
			t.Errorf("on this thread: %v", err)
		}
		made := make(chan error)
		go func() { made <- unix.Mkdirat(unix.AT_FDCWD, path, 0) }()
		check.Equal(t, "on another thread", <-made, nil)
	}, func(Call) unix.Errno { return unix.EIO }, unix.SYS_MKDIRAT)
}
