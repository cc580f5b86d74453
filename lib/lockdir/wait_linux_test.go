package lockdir

import (
	"testing"
	"time"

	"adlock/lib/limit"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/test/helper"
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
