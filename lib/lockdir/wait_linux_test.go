package lockdir

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/limit"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/test/helper"
	"adlock/test/intercept"
)

func TestANewcomerThatWaitedLeavesNoWatch(t *testing.T) {
	k := newLocker(t)
	wantVerdict(t, k, ask(sleeper(t)), locker.Acquired)
	before := helper.Anonymous(t, "inotify")
	r := ask(sleeper(t))
	r.Wait = 50 * time.Millisecond
	wantVerdict(t, k, r, locker.Busy)
	if left := helper.Anonymous(t, "inotify") - before; left != 0 {
		t.Errorf("%d descriptors are left", left)
	}
}

func TestTheWatchOfANewcomerThatHasOtherThingsToDoIsClosedWhenItSays(t *testing.T) {
	k := newLocker(t)
	wantVerdict(t, k, ask(sleeper(t)), locker.Acquired)
	before := helper.Anonymous(t, "inotify")
	r := ask(sleeper(t))
	r.Wait = time.Second
	var later []func()
	r.Later = func(work func()) { later = append(later, work) }
	wantVerdict(t, k, r, locker.Busy)
	if left := helper.Anonymous(t, "inotify") - before; left != 1 || len(later) != 1 {
		t.Fatalf("%d descriptors are left, and %d things to do", left, len(later))
	}
	later[0]()
	if left := helper.Anonymous(t, "inotify") - before; left != 0 {
		t.Errorf("%d descriptors are left", left)
	}
}

func TestANewcomerThatDidNotWaitLeavesNothingForLater(t *testing.T) {
	r := ask(sleeper(t))
	r.Wait = time.Hour
	r.Later = func(func()) { t.Error("there is something") }
	wantVerdict(t, newLocker(t), r, locker.Acquired)
}

func TestAWaitingNewcomerLooksTwiceAtOnceAndThenWhenItsTimeIsUp(t *testing.T) {
	k, r := newLocker(t), ask(process.Identity{})
	r.Wait = time.Second
	w := newWaiting(k.Dir, &r)
	defer w.close()
	busy := locker.Outcome{Verdict: locker.Busy}
	if w.spent() != 0 {
		t.Errorf("it has waited %v before it began", w.spent())
	}
	if !w.next(busy) || !w.watch.Tells() {
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

func TestWithSlotsTheFilesOfTheWholeProgramWakeANewcomer(t *testing.T) {
	dir := newLocker(t).Dir
	for slots, want := range map[int]string{0: string(motd.Name()), 1: motd.Name().Prefix()} {
		r := ask(process.Here())
		r.Slots = slots
		if w := newWaiting(dir, &r); w.whose != want {
			t.Errorf("%d slots: woken by the files of %s, want %s", slots, w.whose, want)
		}
	}
}

func TestHowLongTheKernelsWordIsWaitedFor(t *testing.T) {
	k := newLocker(t)
	tells := lockfile.NewWatch(k.Dir)
	defer tells.Close()
	var silent lockfile.Watch
	intercept.Run(t, func() { silent = lockfile.NewWatch(k.Dir) }, func(intercept.Call) unix.Errno { return unix.EMFILE }, unix.SYS_INOTIFY_INIT1)
	if !tells.Tells() || silent.Tells() {
		t.Fatal("no such watches")
	}
	for _, c := range []struct {
		w           lockfile.Watch
		o           locker.Outcome
		least, most time.Duration
	}{
		{tells, locker.Outcome{Verdict: locker.Busy}, 5 * time.Second, 5 * time.Second},
		{tells, locker.Outcome{Verdict: locker.Busy, Recheck: 50 * time.Millisecond}, 51 * time.Millisecond, 51 * time.Millisecond},
		{tells, locker.Outcome{Verdict: locker.Busy, Recheck: 1}, time.Millisecond + 1, time.Millisecond + 1},
		{tells, locker.Outcome{Verdict: locker.Busy, Recheck: time.Hour}, 5 * time.Second, 5 * time.Second},
		{silent, locker.Outcome{Verdict: locker.Busy}, 100 * time.Millisecond, time.Second},
		{tells, locker.Outcome{Verdict: locker.Full}, 100 * time.Millisecond, time.Second},
	} {
		w := waiting{watch: c.w}
		for range 200 {
			if got := w.pollAfter(c.o); got < c.least || got > c.most {
				t.Fatalf("%v of %+v, want %v to %v", got, c.o, c.least, c.most)
			}
		}
	}
	first, w := time.Duration(0), waiting{watch: silent}
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

// callsOf are the calls by which a newcomer waits for a lock that was removed once, from
// its next on until that is back: it polls, looks for the lock (stat), opens something.
// Before each is made, told gets the calls up to it.
func callsOf(t *testing.T, w *waiting, k *Locker, told func(calls string)) string {
	t.Helper()
	var calls []string
	kinds := map[int]string{unix.SYS_PPOLL: "poll", unix.SYS_NEWFSTATAT: "stat", unix.SYS_OPENAT: "open"}
	intercept.Run(t, func() {
		if !w.next(locker.Outcome{Verdict: locker.Busy}) {
			t.Error("it waits no more")
		}
	}, func(c intercept.Call) unix.Errno {
		if c.Number != unix.SYS_PPOLL && !within(k, c.FD(0)) {
			return 0
		}
		calls = slices.Compact(append(calls, kinds[c.Number])) // a poll that a signal cuts short is repeated
		told(strings.Join(calls, " "))
		return 0
	}, unix.SYS_PPOLL, unix.SYS_NEWFSTATAT, unix.SYS_OPENAT)
	return strings.Join(calls, " ")
}

// waits returns a newcomer that waits for a lock.
func waits(t *testing.T, slots int, most time.Duration) (*Locker, *waiting) {
	t.Helper()
	k, r := newLocker(t), ask(process.Identity{})
	r.Wait, r.Slots = most, slots
	plant(t, k, "", 0)
	w := newWaiting(k.Dir, &r)
	t.Cleanup(w.close)
	if !w.next(locker.Outcome{Verdict: locker.Busy}) || !w.watch.Tells() {
		t.Fatal("no watch")
	}
	return k, w
}

func removed(t *testing.T, k *Locker, file string) {
	t.Helper()
	if err := os.Remove(k.Dir.Path(file)); err != nil {
		t.Error(err)
	}
}

func TestOneWhoFindsTheLockThereAgainLooksNoFurtherAndMissesNoRelease(t *testing.T) {
	goes := func(k *Locker) { removed(t, k, motdLock.String()) }
	comes := func(k *Locker) { plant(t, k, "", 0) }
	for claim, c := range map[string]struct {
		slots int
		acts  map[string][]func(*Locker) // what others do, after which calls; "": before
		want  string
	}{
		"it went":               {0, map[string][]func(*Locker){"": {goes}}, "poll stat"},
		"it is there again":     {0, map[string][]func(*Locker){"": {goes, comes}}, "poll stat poll"},
		"it went twice":         {0, map[string][]func(*Locker){"": {goes, comes, goes}}, "poll stat"},
		"it went before seen":   {0, map[string][]func(*Locker){"": {goes, comes}, "poll stat": {goes}}, "poll stat"},
		"it went when seen":     {0, map[string][]func(*Locker){"": {goes, comes}, "poll stat poll": {goes}}, "poll stat poll stat"},
		"it went and came back": {0, map[string][]func(*Locker){"": {goes, comes}, "poll stat poll": {goes, comes}}, "poll stat poll stat poll"},
		"it went in the end": {0, map[string][]func(*Locker){"": {goes, comes}, "poll stat poll": {goes, comes}, "poll stat poll stat": {goes}},
			"poll stat poll stat"},
		"it is one for a slot": {2, map[string][]func(*Locker){"": {goes, comes}}, "poll"},
	} {
		k, w := waits(t, c.slots, time.Hour)
		do := func(calls string) {
			for _, act := range c.acts[calls] {
				act(k)
			}
			delete(c.acts, calls)
		}
		do("")
		if got := callsOf(t, w, k, do); got != c.want {
			t.Errorf("%s: %s, want %s", claim, got, c.want)
		}
	}
}

func TestOneWhoIsToldOfNothingLooksWhenItsTimeIsUp(t *testing.T) {
	k, w := waits(t, 0, time.Second)
	if got := callsOf(t, w, k, func(string) {}); got != "poll" {
		t.Errorf("%s, want a poll alone", got)
	}
}

// Readers' locks go beside one that stays: what that says is to be looked at some time.
func TestOneWhoIsToldOfLocksAgainAndAgainLooksAtLast(t *testing.T) {
	k, w := waits(t, 0, time.Hour)
	reader := readerLock(process.Identity{PID: 7}).String()
	goes := func(string) { plantFile(t, k, reader, "", 0); removed(t, k, reader) }
	goes("")
	began := time.Now()
	callsOf(t, w, k, goes)
	if took := time.Since(began); took < pollMost || took > 20*time.Second {
		t.Errorf("it looks after %v, want %v", took, pollMost)
	}
}

func TestHowLongOneYields(t *testing.T) {
	r := locker.Request{Wait: time.Hour}
	w := newWaiting(nil, &r)
	differ := map[time.Duration]bool{}
	for range 2000 {
		got := w.yieldFor(time.Second)
		if differ[got] = true; got < 50*time.Millisecond || got > 150*time.Millisecond {
			t.Fatal(got)
		}
	}
	if len(differ) < 1000 {
		t.Errorf("%d times among 2,000: all look at the same time", len(differ))
	}
	if got := w.yieldFor(time.Millisecond); got != time.Millisecond {
		t.Errorf("%v, want no more than a millisecond", got)
	}
	r.Wait = 20 * time.Millisecond
	if got := newWaiting(nil, &r).yieldFor(time.Second); got > r.Wait {
		t.Errorf("%v, and it waits %v at most", got, r.Wait)
	}
}
