package lockfile

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"adlock/test/support/helper"
	"adlock/test/support/intercept"
)

// The files in the way of the waiters below.
const mine, read = "lock.cfengine_conf.dax.x.y", "read.cfengine_conf.dax.x.y.4711"

// woken returns how long Wait takes; the test fails if Wait does not return.
func woken(t *testing.T, w Watch, most time.Duration, owners ...int) time.Duration {
	t.Helper()
	back, began := make(chan struct{}), time.Now()
	go func() { w.Wait([]string{mine, read}, owners, -1, most); close(back) }()
	select {
	case <-back:
	case <-time.After(helper.Patience):
		t.Fatal("it does not wake")
	}
	return time.Since(began)
}

func watching(t *testing.T, d *Dir) Watch {
	t.Helper()
	w := NewWatch(d)
	if !w.Tells() {
		t.Fatal("no watch")
	}
	t.Cleanup(w.Close)
	return w
}

func TestAWatchWakesWhenALockInTheWayGoes(t *testing.T) {
	d := newDir(t)
	path := func(file string) string {
		must(t, os.WriteFile(d.Path(file), nil, 0o600))
		return d.Path(file)
	}
	mine, read, strange := path(mine), path(read), path("lock.cfengine_conf.dax.x.z")
	for claim, c := range map[string]struct {
		acts  func() error
		wakes bool
	}{
		"a lock is removed":           {func() error { return os.Remove(mine) }, true},
		"a reader's lock is moved":    {func() error { return os.Rename(read, filepath.Join(t.TempDir(), "x")) }, true},
		"another lock goes":           {func() error { return os.Remove(strange) }, false},
		"a lock is put in place":      {func() error { return os.WriteFile(path("lock.cfengine_conf.dax.new"), nil, 0o600) }, false},
		"nothing happens to any lock": {func() error { return nil }, false},
	} {
		w := watching(t, d)
		if err := c.acts(); err != nil {
			t.Fatal(err)
		}
		most := 100 * time.Millisecond
		if c.wakes {
			most = time.Hour
		}
		if took := woken(t, w, most); !c.wakes && took < most {
			t.Errorf("%s: it woke after %v", claim, took)
		}
	}
}

func TestAWaitReportsWhetherALockHasGone(t *testing.T) {
	const mine, strange = "lock.p.h.o.x", "lock.q.h.o.x"
	zombie, gone, lives := unreaped(t), reaped(t), os.Getpid()
	files := []string{mine}
	var said, silent [2]int
	must(t, unix.Pipe(said[:]))
	must(t, unix.Pipe(silent[:]))
	for _, fd := range append(said[:], silent[:]...) {
		t.Cleanup(func() { unix.Close(fd) })
	}
	_, err := unix.Write(said[1], []byte("x"))
	must(t, err)
	if (Watch{-1}).Wait(files, []int{zombie}, silent[0], time.Millisecond) {
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
		"its owner is dead, too":                 {mine, []int{zombie}, silent[0], time.Hour, true},
		"its owner is gone, too":                 {mine, []int{gone}, silent[0], time.Hour, true},
		"its owner is dead, another's lock went": {strange, []int{zombie}, silent[0], time.Hour, false},
		"its owner is gone, another's lock went": {strange, []int{gone}, silent[0], time.Hour, false},
		"one of the owners is dead":              {strange, []int{lives, zombie}, silent[0], time.Hour, false},
		"one of the owners is gone":              {strange, []int{gone, lives}, silent[0], time.Hour, false},
		"it went, and the asker speaks":          {mine, nil, said[0], time.Hour, true},
		"the asker speaks, another's lock went":  {strange, []int{lives}, said[0], time.Hour, false},
	} {
		w := queued(t, c.file)
		if got := w.Wait(files, c.owners, c.asker, c.most); got != c.want {
			t.Errorf("%s: %v", claim, got)
		}
		if told := w.sawOneGo(files); told != (c.most == 0) {
			t.Errorf("%s: reported again: %v", claim, told)
		}
	}
}

func TestAnothersLockThatGoesEndsNoWait(t *testing.T) {
	d := newDir(t)
	for _, file := range []string{"lock.p.h.o.x", "lock.q.h.o.x"} {
		must(t, os.WriteFile(d.Path(file), nil, 0o600))
	}
	w, polls, gone := watching(t, d), 0, false
	must(t, os.Remove(d.Path("lock.q.h.o.x")))
	intercept.Run(t, func() { gone = w.Wait([]string{"lock.p.h.o.x"}, nil, -1, time.Hour) }, func(intercept.Call) unix.Errno {
		if polls++; polls == 2 {
			must(t, os.Remove(d.Path("lock.p.h.o.x")))
		}
		return 0
	}, unix.SYS_PPOLL)
	if !gone || polls < 2 {
		t.Errorf("it went: %v, after %d polls", gone, polls)
	}
}

func TestHasAllIsFalseIfOneFileIsMissing(t *testing.T) {
	d := newDir(t)
	must(t, os.WriteFile(d.Path("lock.x"), nil, 0))
	must(t, os.WriteFile(d.Path("lock.y"), nil, 0o600))
	if !d.HasAll([]string{"lock.x", "lock.y"}) || d.HasAll([]string{"lock.x", "lock.z"}) || d.HasAll([]string{"lock.z", "lock.y"}) {
		t.Error("the directory has x and y, and no z")
	}
}

func TestAWatchWakesWhenTheOwnerDies(t *testing.T) {
	owner := run(t, "sleep", "60")
	before := helper.Anonymous(t, "pidfd")
	woken(t, Watch{-1}, time.Millisecond, os.Getpid(), os.Getppid())
	if left := helper.Anonymous(t, "pidfd") - before; left != 0 {
		t.Errorf("%d descriptors are left", left)
	}
	back := make(chan struct{})
	go func() { Watch{-1}.Wait([]string{mine}, []int{os.Getpid(), owner}, -1, time.Hour); close(back) }()
	for begun := time.Now(); helper.Anonymous(t, "pidfd") < before+2; { // otherwise there is no owner to watch
		if time.Since(begun) > helper.Patience {
			t.Fatal("it does not watch")
		}
	}
	must(t, syscall.Kill(owner, syscall.SIGKILL))
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
		for _, w := range []Watch{{-1}, watching(t, d)} {
			for _, owner := range []int{zombie, reaped(t)} {
				if took := woken(t, w, time.Hour, owner); took != PollLeast {
					t.Errorf("back after %v", took)
				}
			}
		}
		if took := woken(t, Watch{-1}, time.Millisecond, zombie); took != time.Millisecond {
			t.Errorf("back after %v, want one millisecond", took)
		}
		w := watching(t, d) // if a lock was removed too, there is something to look at
		must(t, os.WriteFile(d.Path(mine), nil, 0o600))
		must(t, os.Remove(d.Path(mine)))
		if took := woken(t, w, time.Hour, zombie); took != 0 {
			t.Errorf("back after %v where a lock went", took)
		}
	})
}

// reaped returns the pid of a dead child that was waited for.
func reaped(t *testing.T) int {
	t.Helper()
	child, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
	must(t, err)
	_, err = child.Wait()
	must(t, err)
	return child.Pid
}

// unreaped returns the pid of a dead child that was not waited for.
func unreaped(t *testing.T) int {
	t.Helper()
	child, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { child.Wait() })
	var info unix.Siginfo
	if err := unix.Waitid(unix.P_PID, child.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	return child.Pid
}

func TestAWaitLastsItsTimeDespiteAnInterruptOrError(t *testing.T) {
	for errno, least := range map[unix.Errno]time.Duration{unix.EINTR: 150 * time.Millisecond, unix.ENOMEM: 100 * time.Millisecond} {
		calls, took := 0, time.Duration(0)
		intercept.Run(t, func() {
			began := time.Now()
			Watch{-1}.Wait(nil, nil, -1, 150*time.Millisecond)
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

func TestAWaitWithNoTimeLeftReturns(t *testing.T) {
	woken(t, Watch{-1}, -time.Hour)
}

func TestWithoutInotifyThereIsNoWatchAndNothingStaysOpen(t *testing.T) {
	d := newDir(t)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	none := before
	none.Cur = 0
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	w := NewWatch(d)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if w != (Watch{-1}) {
		t.Errorf("without descriptors: %v", w)
	}
	open := helper.Anonymous(t, "inotify")
	var failed Watch
	intercept.Run(t, func() { failed = NewWatch(d) }, func(intercept.Call) unix.Errno { return unix.ENOSPC }, unix.SYS_INOTIFY_ADD_WATCH)
	if failed != (Watch{-1}) || helper.Anonymous(t, "inotify") != open {
		t.Errorf("without watches: %v, %d descriptors more", failed, helper.Anonymous(t, "inotify")-open)
	}
	NewWatch(d).Close()
	failed.Close()
	if left := helper.Anonymous(t, "inotify"); left != open {
		t.Errorf("%d descriptors are left", left-open)
	}
	if !(Watch{0}).Tells() || (Watch{-1}).Tells() {
		t.Error("Tells does not follow the descriptor")
	}
}
