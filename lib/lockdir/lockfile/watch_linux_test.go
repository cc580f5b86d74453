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

// The files in the way of the waiters below.
const mine, read = "lock.cfengine_conf.dax.x.y", "read.cfengine_conf.dax.x.y.4711"

// woken returns how long Wait takes after acts; the test fails if Wait does not return. Without a
// directory nothing is watched but the owners.
func woken(t *testing.T, d *Dir, acts func() error, most time.Duration, owners ...int) (took time.Duration) {
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
		w.Wait([]string{mine, read}, owners, nil, most)
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

// queued returns a watch on a new directory with these files, the first of which has just been removed.
func queued(t *testing.T, files ...string) *Watch {
	t.Helper()
	dir := newDir(t)
	for _, file := range files {
		must.Do(t, os.WriteFile(dir.Path(file), nil, 0o600))
	}
	w := watching(t, dir)
	must.Do(t, os.Remove(dir.Path(files[0])))
	return w
}

func TestAWaitReportsWhetherALockHasGone(t *testing.T) {
	const mine, strange = "lock.p.h.o.x", "lock.q.h.o.x"
	zombie, gone, lives := unreaped(t), reaped(t), os.Getpid()
	files := []string{mine}
	pipe := func() (ends [2]int) {
		must.Do(t, unix.Pipe(ends[:]))
		t.Cleanup(func() { unix.Close(ends[0]); unix.Close(ends[1]) })
		return ends
	}
	said, silent := pipe(), pipe()
	_, err := unix.Write(said[1], []byte("x"))
	must.Do(t, err)
	none := blind
	if none.Wait(files, []int{zombie}, silent[:1], time.Millisecond) {
		t.Error("its owner is dead and no lock has gone, but Wait reports one")
	}
	for claim, c := range map[string]struct {
		file   string
		owners []int
		asker  int
		most   time.Duration
		want   bool
	}{
		"it went":                                {mine, nil, silent[0], time.Hour, true},
		"the time is up":                         {strange, nil, silent[0], time.Millisecond, false},
		"there is no time":                       {mine, nil, silent[0], 0, false},
		"there is less than none":                {mine, nil, silent[0], -time.Hour, false},
		"its owner is dead, too":                 {mine, []int{zombie}, silent[0], time.Hour, true},
		"its owner is gone, too":                 {mine, []int{gone}, silent[0], time.Hour, true},
		"its owner is dead, another's lock went": {strange, []int{zombie}, silent[0], time.Hour, false},
		"its owner is gone, another's lock went": {strange, []int{gone}, silent[0], time.Hour, false},
		"one of the owners is dead":              {strange, []int{lives, zombie}, silent[0], time.Hour, false},
		"one of the owners is gone":              {strange, []int{gone, lives}, silent[0], time.Hour, false},
		"it went, and the asker speaks":          {mine, nil, said[0], time.Hour, true},
		"the asker speaks, another's lock went":  {strange, []int{lives}, said[0], time.Hour, false},
	} {
		w := queued(t, c.file, mine)
		if got := w.Wait(files, c.owners, []int{c.asker}, c.most); got != c.want {
			t.Errorf("%s: %v", claim, got)
		}
		w.Close()
	}
}

func TestAnothersLockThatGoesEndsNoWait(t *testing.T) {
	d := newDir(t)
	for _, file := range []string{"lock.p.h.o.x", "lock.q.h.o.x"} {
		must.Do(t, os.WriteFile(d.Path(file), nil, 0o600))
	}
	polls, gone := 0, false
	intercept.Run(t, func() {
		w := NewWatch(d)
		defer w.Close()
		must.Do(t, os.Remove(d.Path("lock.q.h.o.x")))
		gone = w.Wait([]string{"lock.p.h.o.x"}, nil, nil, time.Hour)
	}, func(intercept.Call) unix.Errno {
		if polls++; polls == 2 {
			must.Do(t, os.Remove(d.Path("lock.p.h.o.x")))
		}
		return 0
	}, unix.SYS_PPOLL)
	if !gone || polls < 2 {
		t.Errorf("it went: %v, after %d polls", gone, polls)
	}
}

func TestAWatchWakesWhenTheOwnerDies(t *testing.T) {
	owner := run(t, "sleep", "60")
	before := helper.Anonymous(t, "pidfd")
	woken(t, nil, nothing, time.Millisecond, os.Getpid(), os.Getppid())
	if left := helper.Anonymous(t, "pidfd") - before; left != 0 {
		t.Errorf("%d descriptors are left", left)
	}
	back := make(chan struct{})
	none := blind
	go func() { none.Wait([]string{mine}, []int{os.Getpid(), owner}, nil, time.Hour); close(back) }()
	for begun := time.Now(); helper.Anonymous(t, "pidfd") < before+2; { // otherwise there is no owner to watch
		if time.Since(begun) > helper.Patience {
			t.Fatal("it does not watch")
		}
	}
	must.Do(t, syscall.Kill(owner, syscall.SIGKILL))
	select {
	case <-back:
	case <-time.After(helper.Patience):
		t.Fatal("it does not wake")
	}
}

// The rest of its job may be about to end.
func TestADeadOwnerIsNotLookedAtWithoutAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // its clock stands still while any goroutine runs
		d, zombie := newDir(t), unreaped(t)
		must.Do(t, os.WriteFile(d.Path(mine), nil, 0o600))
		for _, watched := range []*Dir{nil, d} {
			for _, owner := range []int{zombie, reaped(t)} {
				if took := woken(t, watched, nothing, time.Hour, owner); took != PollLeast {
					t.Errorf("back after %v", took)
				}
			}
		}
		if took := woken(t, nil, nothing, time.Millisecond, zombie); took != time.Millisecond {
			t.Errorf("back after %v, want one millisecond", took)
		}
		// If a lock was removed too, there is something to look at.
		if took := woken(t, d, func() error { return os.Remove(d.Path(mine)) }, time.Hour, zombie); took != 0 {
			t.Errorf("back after %v where a lock went", took)
		}
	})
}

// reaped returns the pid of a dead child that was waited for.
func reaped(t *testing.T) int {
	t.Helper()
	child, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
	must.Do(t, err)
	_, err = child.Wait()
	must.Do(t, err)
	return child.Pid
}

// unreaped returns the pid of a dead child that was not waited for.
func unreaped(t *testing.T) int {
	t.Helper()
	child, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
	must.Do(t, err)
	t.Cleanup(func() { child.Wait() })
	var info unix.Siginfo
	must.Do(t, unix.Waitid(unix.P_PID, child.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil))
	return child.Pid
}

func TestAWaitLastsItsTimeDespiteAnInterruptOrError(t *testing.T) {
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

func TestWithoutNotificationsThereIsNoWatchAndNothingIsLeft(t *testing.T) {
	d := newDir(t)
	open := helper.Anonymous(t, "")
	for _, call := range []int{unix.SYS_SIGNALFD4, unix.SYS_OPENAT, unix.SYS_FCNTL} {
		failed := Watch{}
		intercept.Run(t, func() { failed = NewWatch(d); failed.Close() }, func(intercept.Call) unix.Errno { return unix.EINVAL }, call)
		if failed.Tells() {
			t.Errorf("a watch without the call %d", call)
		}
	}
	watching(t, d).Close()
	if left := helper.Anonymous(t, "") - open; left != 0 {
		t.Errorf("%d descriptors are left", left)
	}
	var mask unix.Sigset_t
	must.Do(t, unix.PthreadSigmask(unix.SIG_SETMASK, nil, &mask))
	if mask.Val[0]&(1<<(unix.SIGIO-1)) != 0 {
		t.Error("the thread still blocks the signal")
	}
}

// Waiters link locks for a moment and remove them again: these files would wake them and each
// other without end.
func TestTheFilesInTheWayAloneWakeAWaiter(t *testing.T) {
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
		removed(t, d, file)
	}
	if w.Wait(inWay, nil, nil, time.Millisecond) {
		t.Error("another file wakes it")
	}
	moved := func(path string) error { return os.Rename(path, elsewhere) }
	for _, goes := range []func(path string) error{os.Remove, moved} {
		for _, file := range inWay {
			must.Do(t, goes(d.Path(file)))
			if !w.Wait(inWay, nil, nil, time.Hour) {
				t.Errorf("%s does not wake it", file)
			}
			planted(t, d, file)
		}
	}
}

func TestManyFilesThatGoWakeAWaiterSeldom(t *testing.T) {
	d, polls, stop := newDir(t), 0, make(chan struct{})
	must.Do(t, os.WriteFile(d.Path(mine), nil, 0o600))
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
		w.Wait([]string{mine}, nil, nil, time.Hour)
	}, func(intercept.Call) unix.Errno { polls++; return 0 }, unix.SYS_PPOLL)
	if <-stop; polls > 100 {
		t.Errorf("it looked %d times while 200 files went", polls)
	}
}
