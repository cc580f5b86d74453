package lockdir

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/limit"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/test/support/intercept"
)

// A waiter that links a lock keeps others out meanwhile, and wakes them when it unlinks it.
func TestAWaiterFindsWhatIsInItsWayWithoutALockOfItsOwn(t *testing.T) {
	program := func(operand string, slots int, shared bool) locker.Request {
		r := ask(sleeper(t))
		r.Atom.Operand, r.Slots, r.Shared = operand, slots, shared
		return r
	}
	slot := func(n int) string { return motd.Slot(n).ActiveLock() }
	for claim, c := range map[string]struct {
		owners   []locker.Request
		newcomer locker.Request
		files    func(owners []locker.Request) []string
		verdict  locker.Verdict
	}{
		"an owner": {
			[]locker.Request{program("x", 0, false)}, program("x", 2, false),
			func([]locker.Request) []string { return []string{program("x", 0, false).Atom.Name().ActiveLock()} }, locker.Busy,
		},
		"a writer, of a reader": {
			[]locker.Request{program("x", 0, false)}, program("x", 0, true),
			func([]locker.Request) []string { return []string{program("x", 0, false).Atom.Name().ActiveLock()} }, locker.Busy,
		},
		"a reader": {
			[]locker.Request{program("x", 0, true)}, program("x", 0, false),
			func(o []locker.Request) []string { return []string{o[0].Atom.Name().ReaderLock(o[0].Owner.PID)} }, locker.Busy,
		},
		"slots": {
			[]locker.Request{program("x", 2, false), program("y", 2, true)}, program("z", 2, false),
			func([]locker.Request) []string { return []string{slot(1), slot(2)} }, locker.Full,
		},
		"slots, of a reader": {
			[]locker.Request{program("x", 1, false)}, program("z", 1, true),
			func([]locker.Request) []string { return []string{slot(1)} }, locker.Full,
		},
	} {
		k := newLocker(t)
		pids := []int{}
		for _, r := range c.owners {
			wantVerdict(t, k, r, locker.Acquired)
			pids = append(pids, r.Owner.PID)
		}
		r := c.newcomer
		r.Wait = time.Hour
		w := lockfile.NewWaiting(k.Dir, &r, nil)
		defer w.Close(false)
		first, err := k.attempt(&r, w)
		if err != nil || first.Verdict != c.verdict || !w.Next(first) {
			t.Fatalf("%s: %+v, %v", claim, first, err)
		}
		links := 0
		var o locker.Outcome
		intercept.Run(t, func() { o, err = k.attempt(&r, w) }, func(intercept.Call) unix.Errno {
			links++
			return 0
		}, unix.SYS_LINKAT, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_UNLINKAT)
		if err != nil || o.Verdict != c.verdict || o.Reason != first.Reason || links > 0 {
			t.Errorf("%s: %+v, %v, %d changes; at first %+v", claim, o, err, links, first)
		}
		if files := c.files(c.owners); !slices.Equal(w.InWay.Files, files) || !slices.Equal(w.InWay.Owners, pids) {
			t.Errorf("%s: %+v, want %v of %v", claim, w.InWay, files, pids)
		}
	}
}

func TestAWaiterThatFindsNothingInItsWayTakesTheAtom(t *testing.T) {
	for _, slots := range []int{0, 2} {
		k, r := newLocker(t), ask(sleeper(t))
		r.Wait, r.Slots = time.Hour, slots
		w := lockfile.NewWaiting(k.Dir, &r, nil)
		defer w.Close(false)
		if !w.Next(locker.Outcome{Verdict: locker.Busy}) {
			t.Fatal("it does not wait")
		}
		if o, err := k.attempt(&r, w); err != nil || o.Verdict != locker.Acquired {
			t.Errorf("%+v, %v", o, err)
		}
	}
}

func TestANewcomerWaitsOnlyForWhatMayChangeInTime(t *testing.T) {
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
