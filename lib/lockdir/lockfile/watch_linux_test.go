package lockfile

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"adlock/test/support/helper"
	"adlock/test/support/intercept"
	"adlock/test/support/must"
)

const mine, read = "lock.cfengine_conf.dax.x.y", "read.cfengine_conf.dax.x.y.4711"

// woken returns how long Wait takes after acts; the test fails if Wait does not return. Without a
// directory nothing is watched but the owners.
func woken(t *testing.T, d *Dir, inWay []Standing, acts func() error, most time.Duration, owners ...int) (took time.Duration) {
	t.Helper()
	back := make(chan error, 1)
	go func() { // a watch belongs to one thread
		w := blind
		if d != nil {
			w = NewWatch(d)
			defer w.Close()
		}
		err := acts()
		began := time.Now()
		w.Wait(inWay, owners, nil, most)
		took = time.Since(began)
		back <- err
	}()
	select {
	case err := <-back:
		must.Do(t, err)
	case <-time.After(helper.Patience):
		t.Fatal("it does not wake")
	}
	return took
}

func nothing() error { return nil }

// watching returns a watch, for the goroutine that runs the test.
func watching(t *testing.T, d *Dir) *Watch {
	t.Helper()
	w := NewWatch(d)
	if !w.Tells() {
		t.Fatal("no watch")
	}
	return &w
}

// stands returns the locks of these names as they are now.
func stands(t *testing.T, d *Dir, files ...string) (all []Standing) {
	t.Helper()
	for _, file := range files {
		var st unix.Stat_t
		must.Do(t, unix.Lstat(d.Path(file), &st))
		all = append(all, standing(file, &st))
	}
	return all
}

func TestAWaitEndsAtOnceIfTimeIsUpOrTheAskerWrites(t *testing.T) {
	pipe := func() (ends [2]int) {
		must.Do(t, unix.Pipe(ends[:]))
		t.Cleanup(func() { unix.Close(ends[0]); unix.Close(ends[1]) })
		return ends
	}
	said, silent := pipe(), pipe()
	must.Get(unix.Write(said[1], []byte("x")))(t)
	for claim, c := range map[string]struct {
		asker int
		most  time.Duration
	}{
		"there is no time": {silent[0], 0}, "there is less than none": {silent[0], -time.Hour}, "the asker speaks": {said[0], 2 * helper.Patience},
	} {
		synctest.Test(t, func(t *testing.T) { // its clock stands still while any goroutine runs
			w, began := watching(t, newDir(t)), time.Now()
			w.Wait(nil, []int{os.Getpid()}, []int{c.asker}, c.most)
			if took := time.Since(began); took != 0 {
				t.Errorf("%s: back after %v", claim, took)
			}
			w.Close()
		})
	}
}

// The event that tells of the lock is then that of its removal: the death of the newcomer that has the
// new one would be found by a later look only.
func TestReplacingALockEndsTheWaitForIt(t *testing.T) {
	d := newDir(t)
	planted(t, d, mine)
	seen := stands(t, d, mine)
	old := must.Get(os.Open(d.Path(mine)))(t) // keeps the inode from being used again
	defer old.Close()
	comes := func() error { must.Do(t, os.Remove(d.Path(mine))); planted(t, d, mine); return nil }
	woken(t, d, seen, comes, time.Hour)

	seen = stands(t, d, mine) // of the same inode as the next one, as a file system may have it
	seen[0].since--
	planted(t, d, read)
	woken(t, d, seen, func() error { return os.Remove(d.Path(read)) }, time.Hour)
}

func TestAWaitEndsWhenTheOwnerDies(t *testing.T) {
	owner := run(t, "sleep", "60")
	before := helper.Anonymous(t, "pidfd")
	woken(t, nil, nil, nothing, time.Millisecond, os.Getpid(), os.Getppid())
	if left := helper.Anonymous(t, "pidfd") - before; left != 0 {
		t.Errorf("%d descriptors are left", left)
	}
	back := make(chan struct{})
	none := blind
	go func() { none.Wait(nil, []int{os.Getpid(), owner}, nil, time.Hour); close(back) }()
	helper.Eventually(t, "it watches", func() bool { return helper.Anonymous(t, "pidfd") >= before+2 }) // else there is no owner
	must.Do(t, syscall.Kill(owner, syscall.SIGKILL))
	select {
	case <-back:
	case <-time.After(helper.Patience):
		t.Fatal("it does not wake")
	}
}

// The rest of its job may be about to end.
func TestAWaiterPausesBeforeItChecksADeadOwnersLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // its clock stands still while any goroutine runs
		d, zombie := newDir(t), unreaped(t)
		planted(t, d, mine)
		seen := stands(t, d, mine)
		for _, watched := range []*Dir{nil, d} {
			for _, owner := range []int{zombie, reaped(t)} {
				if took := woken(t, watched, seen, nothing, time.Hour, owner); took != pollLeast {
					t.Errorf("back after %v", took)
				}
			}
		}
		if took := woken(t, nil, nil, nothing, time.Millisecond, zombie); took != time.Millisecond {
			t.Errorf("back after %v, want one millisecond", took)
		}
		// If a lock was removed too, there is something to look at.
		if took := woken(t, d, seen, func() error { return os.Remove(d.Path(mine)) }, time.Hour, zombie); took != 0 {
			t.Errorf("back after %v where a lock went", took)
		}
	})
}

// reaped returns the pid of a dead child that was waited for.
func reaped(t *testing.T) int {
	t.Helper()
	child := must.Get(os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{}))(t)
	must.Get(child.Wait())(t)
	return child.Pid
}

// unreaped returns the pid of a dead child that was not waited for.
func unreaped(t *testing.T) int {
	t.Helper()
	child := must.Get(os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{}))(t)
	t.Cleanup(func() { child.Wait() })
	var info unix.Siginfo
	must.Do(t, unix.Waitid(unix.P_PID, child.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil))
	return child.Pid
}

func TestAnInterruptedOrFailedPollDoesNotEndAWaitAtOnce(t *testing.T) {
	for errno, least := range map[unix.Errno]time.Duration{unix.EINTR: 150 * time.Millisecond, unix.ENOMEM: 100 * time.Millisecond} {
		calls, took := 0, time.Duration(0)
		intercept.Run(t, func() {
			began := time.Now()
			none := blind
			none.Wait(nil, nil, nil, 150*time.Millisecond)
			took = time.Since(began)
		}, func(intercept.Call) unix.Errno {
			if calls++; calls == 1 {
				return errno
			}
			return 0
		}, unix.SYS_PPOLL)
		if calls == 0 || took < least || took > helper.Patience {
			t.Errorf("%v: %d calls, back after %v, want %v", errno, calls, took, least)
		}
	}
}

func TestAFailedOrClosedWatchLeavesNothingBehind(t *testing.T) {
	d := newDir(t)
	open := helper.Anonymous(t, "")
	for _, call := range []int{unix.SYS_SIGNALFD4, unix.SYS_OPENAT, unix.SYS_FCNTL} {
		failed := Watch{}
		intercept.Run(t, func() { failed = NewWatch(d); failed.Close() }, func(intercept.Call) unix.Errno { return unix.EINVAL }, call)
		if failed != (Watch{dir: -1, signals: -1}) {
			t.Errorf("a watch without the call %d: %+v", call, failed)
		}
	}
	w := watching(t, d)
	if flags := must.Get(unix.FcntlInt(uintptr(w.signals), unix.F_GETFD, 0))(t); flags != unix.FD_CLOEXEC {
		t.Error("a job would inherit the watch")
	}
	planted(t, d, mine)
	if n := must.Get(unix.Poll([]unix.PollFd{{Fd: int32(w.signals), Events: unix.POLLIN}}, 0))(t); n > 0 {
		t.Error("a new file wakes the watch")
	}
	w.Close()
	if left := helper.Anonymous(t, "") - open; left != 0 {
		t.Errorf("%d descriptors are left", left)
	}
	var mask unix.Sigset_t
	must.Do(t, unix.PthreadSigmask(unix.SIG_SETMASK, nil, &mask))
	if mask.Val[0]&(1<<(unix.SIGIO-1)) != 0 {
		t.Error("the thread still blocks the signal")
	}
}

// Waiters link locks for a moment and remove them again: these files would wake them and each other without end.
func TestRemovingALockWakesAWaiterOnlyIfItIsInItsWay(t *testing.T) {
	inWay := []string{"lock.p.h.slot-1", "lock.p.h.slot-2", "read.p.h.o.x.7"}
	strange := []string{
		"lock.p.h.slot-3", "lock.p.h.slot-11", "lock.p.h.o.x", "read.p.h.o.x.77", "read.p.h.o.x",
		"temp.0123456789abcdef0123456789abcdef",
	}
	d, elsewhere := newDir(t), filepath.Join(t.TempDir(), "x")
	for _, file := range slices.Concat(inWay, strange) {
		planted(t, d, file)
	}
	w := watching(t, d)
	defer w.Close()
	planted(t, d, "lock.p.h.o.new")
	for _, file := range strange {
		must.Do(t, os.Remove(d.Path(file)))
	}
	const most = 20 * time.Millisecond
	began := time.Now()
	if w.Wait(stands(t, d, inWay...), nil, nil, most); time.Since(began) < most {
		t.Error("another file wakes it")
	}
	moved := func(path string) error { return os.Rename(path, elsewhere) }
	for _, goes := range []func(path string) error{os.Remove, moved} {
		for _, file := range inWay {
			seen := stands(t, d, inWay...)
			must.Do(t, goes(d.Path(file)))
			began := time.Now()
			if w.Wait(seen, nil, nil, 2*helper.Patience); time.Since(began) > helper.Patience {
				t.Errorf("%s does not wake it", file)
			}
			planted(t, d, file)
		}
	}
}

func TestRemovingManyFilesRarelyWakesAWaiter(t *testing.T) {
	d, polls, stop := newDir(t), 0, make(chan struct{})
	planted(t, d, mine)
	seen := stands(t, d, mine)
	go func() {
		defer close(stop)
		for range 200 {
			path := d.Path("lock.cfengine_conf.dax.x.z")
			_ = os.WriteFile(path, nil, 0o600)
			_ = os.Remove(path)
			time.Sleep(time.Millisecond)
		}
		_ = os.Remove(d.Path(mine))
	}()
	intercept.Run(t, func() {
		w := NewWatch(d)
		defer w.Close()
		w.Wait(seen, nil, nil, time.Hour)
	}, func(intercept.Call) unix.Errno { polls++; return 0 }, unix.SYS_PPOLL)
	if <-stop; polls > 100 {
		t.Errorf("it looked %d times while 200 files went", polls)
	}
}
