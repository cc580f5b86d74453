package lockdir

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/limit"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/test/intercept"
)

// woken is how long wait takes; it fails where that is for ever.
func woken(t *testing.T, w watch, owner int, most time.Duration) time.Duration {
	t.Helper()
	back, began := make(chan struct{}), time.Now()
	go func() { w.wait(motd.Name().Prefix(), owner, -1, most); close(back) }()
	select {
	case <-back:
	case <-time.After(20 * time.Second):
		t.Fatal("it does not wake")
	}
	return time.Since(began)
}

// anonymous counts the descriptors of a kind that have no path.
func anonymous(t *testing.T, kind string) (n int) {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range list {
		if link, _ := os.Readlink("/proc/self/fd/" + entry.Name()); strings.Contains(link, kind) {
			n++
		}
	}
	return n
}

func watching(t *testing.T, k *Locker) watch {
	t.Helper()
	w := newWatch(k.Dir)
	if !w.tells() {
		t.Fatal("no watch")
	}
	t.Cleanup(w.close)
	return w
}

func TestAWatchWakesWhenALockOfTheProgramGoes(t *testing.T) {
	k := newLocker(t)
	path := func(file string) string {
		plantFile(t, k, file, "", 0)
		return k.Dir.Path(file)
	}
	mine, read, strange := path("lock.cfengine_conf.dax.x.y"), path("read.cfengine_conf.dax.x.y.4711"), path("lock.other.dax.x.y")
	for claim, c := range map[string]struct {
		acts  func() error
		wakes bool
	}{
		"a lock is removed":           {func() error { return os.Remove(mine) }, true},
		"a reader's lock is moved":    {func() error { return os.Rename(read, filepath.Join(t.TempDir(), "x")) }, true},
		"another program's goes":      {func() error { return os.Remove(strange) }, false},
		"a lock is put in place":      {func() error { return os.WriteFile(path("lock.cfengine_conf.dax.new"), nil, 0o600) }, false},
		"nothing happens to any lock": {func() error { return nil }, false},
	} {
		w := watching(t, k)
		if err := c.acts(); err != nil {
			t.Fatal(err)
		}
		most := 100 * time.Millisecond
		if c.wakes {
			most = time.Hour
		}
		if took := woken(t, w, 0, most); !c.wakes && took < most {
			t.Errorf("%s: it woke after %v", claim, took)
		}
	}
}

func TestAWatchWakesWhenTheOwnerDies(t *testing.T) {
	owner := sleeper(t)
	before := anonymous(t, "pidfd")
	woken(t, watch{-1}, os.Getpid(), time.Millisecond)
	if left := anonymous(t, "pidfd") - before; left != 0 {
		t.Errorf("%d descriptors are left", left)
	}
	back := make(chan struct{})
	go func() { watch{-1}.wait(motd.Name().Prefix(), owner.PID, -1, time.Hour); close(back) }()
	for begun := time.Now(); anonymous(t, "pidfd") == before; { // else there is no owner to watch
		if time.Since(begun) > 20*time.Second {
			t.Fatal("it does not watch")
		}
	}
	end(t, owner)
	select {
	case <-back:
	case <-time.After(20 * time.Second):
		t.Fatal("it does not wake")
	}
}

// A dead owner whose group still holds the atom is dead at each look.
func TestADeadOwnerIsNotLookedAtWithoutAPause(t *testing.T) {
	k, zombie := newLocker(t), unreaped(t)
	for _, w := range []watch{{-1}, watching(t, k)} {
		if took := woken(t, w, zombie, time.Hour); took < 100*time.Millisecond {
			t.Errorf("back after %v", took)
		}
	}
	if took := woken(t, watch{-1}, zombie, time.Millisecond); took > 10*time.Second {
		t.Errorf("back after %v, want one millisecond", took)
	}
	quickest := time.Hour
	for range 20 { // where a lock went, too, there is something to look at
		w := watching(t, k)
		plantFile(t, k, "lock.cfengine_conf.dax.x.y", "", 0)
		if err := os.Remove(k.Dir.Path("lock.cfengine_conf.dax.x.y")); err != nil {
			t.Fatal(err)
		}
		quickest = min(quickest, woken(t, w, zombie, time.Hour))
		if quickest < 100*time.Millisecond {
			return
		}
	}
	t.Errorf("back after %v at best", quickest)
}

// unreaped returns the pid of a child that is dead and not waited for.
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

func TestAWaitThatIsInterruptedOrFailsTakesItsTime(t *testing.T) {
	for errno, least := range map[unix.Errno]time.Duration{unix.EINTR: 150 * time.Millisecond, unix.ENOMEM: 100 * time.Millisecond} {
		calls, took := 0, time.Duration(0)
		intercept.Run(t, func() {
			began := time.Now()
			watch{-1}.wait(motd.Name().Prefix(), 0, -1, 150*time.Millisecond)
			took = time.Since(began)
		}, func(intercept.Call) unix.Errno {
			if calls++; calls == 1 {
				return errno
			}
			return 0
		}, unix.SYS_PPOLL)
		if calls == 0 || took < least || took > 10*time.Second {
			t.Errorf("%v: %d calls, back after %v, want %v", errno, calls, took, least)
		}
	}
}

func TestATimeThatIsUpIsNotWaitedFor(t *testing.T) {
	woken(t, watch{-1}, 0, -time.Hour)
}

func TestWithoutInotifyThereIsNoWatchAndNothingStaysOpen(t *testing.T) {
	k := newLocker(t)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	none := before
	none.Cur = 0
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	w := newWatch(k.Dir)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if w != (watch{-1}) {
		t.Errorf("without descriptors: %v", w)
	}
	open := anonymous(t, "inotify")
	var failed watch
	intercept.Run(t, func() { failed = newWatch(k.Dir) }, func(intercept.Call) unix.Errno { return unix.ENOSPC }, unix.SYS_INOTIFY_ADD_WATCH)
	if failed != (watch{-1}) || anonymous(t, "inotify") != open {
		t.Errorf("without watches: %v, %d descriptors more", failed, anonymous(t, "inotify")-open)
	}
	newWatch(k.Dir).close()
	failed.close()
	if left := anonymous(t, "inotify"); left != open {
		t.Errorf("%d descriptors are left", left-open)
	}
	if !(watch{0}).tells() || (watch{-1}).tells() {
		t.Error("a watch tells by its descriptor")
	}
}

func TestANewcomerThatWaitedLeavesNoWatch(t *testing.T) {
	k := newLocker(t)
	wantVerdict(t, k, ask(sleeper(t)), locker.Acquired)
	before := anonymous(t, "inotify")
	r := ask(sleeper(t))
	r.Wait = 50 * time.Millisecond
	wantVerdict(t, k, r, locker.Busy)
	if left := anonymous(t, "inotify") - before; left != 0 {
		t.Errorf("%d descriptors are left", left)
	}
}

func TestAWaitingNewcomerLooksTwiceAtOnceAndThenWhenItsTimeIsUp(t *testing.T) {
	k, r := newLocker(t), ask(process.Identity{})
	r.Wait = 100 * time.Millisecond
	w := newWaiting(k.Dir, &r)
	defer w.close()
	busy := locker.Outcome{Verdict: locker.Busy}
	if w.spent() != 0 {
		t.Errorf("it has waited %v before it began", w.spent())
	}
	if !w.next(busy) || !w.watch.tells() {
		t.Fatal("the first look sets no watch")
	}
	if !w.next(busy) || w.Left() > 0 {
		t.Errorf("%v are left when it looks again", w.Left())
	}
	if w.next(busy) {
		t.Error("it looks again though its time is up")
	}
	if spent := w.spent(); spent < r.Wait || spent > 10*time.Second {
		t.Errorf("it has waited %v", spent)
	}
}

func TestHowLongTheKernelsWordIsWaitedFor(t *testing.T) {
	for _, c := range []struct {
		w           watch
		o           locker.Outcome
		least, most time.Duration
	}{
		{watch{0}, locker.Outcome{Verdict: locker.Busy}, 5 * time.Second, 5 * time.Second},
		{watch{0}, locker.Outcome{Verdict: locker.Busy, Recheck: 50 * time.Millisecond}, 51 * time.Millisecond, 51 * time.Millisecond},
		{watch{0}, locker.Outcome{Verdict: locker.Busy, Recheck: 1}, time.Millisecond + 1, time.Millisecond + 1},
		{watch{0}, locker.Outcome{Verdict: locker.Busy, Recheck: time.Hour}, 5 * time.Second, 5 * time.Second},
		{watch{-1}, locker.Outcome{Verdict: locker.Busy}, 100 * time.Millisecond, time.Second},
		{watch{0}, locker.Outcome{Verdict: locker.Full}, 100 * time.Millisecond, time.Second},
	} {
		w := waiting{watch: c.w}
		for range 200 {
			if got := w.pollAfter(c.o); got < c.least || got > c.most {
				t.Fatalf("%v of %+v, want %v to %v", got, c.o, c.least, c.most)
			}
		}
	}
	first, w := time.Duration(0), waiting{watch: watch{-1}}
	for range 200 {
		if got := w.pollAfter(locker.Outcome{}); first == 0 {
			first = got
		} else if got != first {
			return
		}
	}
	t.Error("all look at the same time")
}

func TestWhatIsWorthWaitingFor(t *testing.T) {
	ahead := process.Boottime() + time.Hour
	for _, c := range []struct {
		r    locker.Request
		o    locker.Outcome
		want bool
	}{
		{locker.Request{}, locker.Outcome{Verdict: locker.Busy}, false},
		{locker.Request{WaitSince: ahead}, locker.Outcome{Verdict: locker.Busy}, false},
		{locker.Request{Wait: time.Hour}, locker.Outcome{Verdict: locker.Busy}, true},
		{locker.Request{Wait: time.Hour}, locker.Outcome{Verdict: locker.Full}, true},
		{locker.Request{Wait: 1, WaitSince: ahead}, locker.Outcome{Verdict: locker.Busy}, true},
		{locker.Request{Wait: time.Hour}, locker.Outcome{Verdict: locker.Busy, Endless: true}, false},
		{locker.Request{Wait: time.Hour}, locker.Outcome{Verdict: locker.TooSoon}, false},
		{locker.Request{Wait: time.Hour, WaitElapsed: true}, locker.Outcome{Verdict: locker.TooSoon, Recheck: time.Minute}, true},
		{locker.Request{Wait: time.Hour, WaitElapsed: true}, locker.Outcome{Verdict: locker.TooSoon, Recheck: 2 * time.Hour}, false},
		{locker.Request{Wait: time.Hour, WaitElapsed: true}, locker.Outcome{Verdict: locker.Stuck}, false},
		{locker.Request{Wait: time.Minute, WaitSince: ahead - 2*time.Hour}, locker.Outcome{Verdict: locker.Busy}, false},
		{locker.Request{Wait: limit.Never, WaitSince: ahead - 2*time.Hour}, locker.Outcome{Verdict: locker.Busy}, true},
		{locker.Request{Wait: limit.Never, WaitElapsed: true}, locker.Outcome{Verdict: locker.TooSoon, Recheck: limit.Never}, true},
	} {
		if got := locker.NewWaiting(&c.r).Worthwhile(c.o); got != c.want {
			t.Errorf("%+v of %+v: %v", c.o, c.r, got)
		}
	}
}
