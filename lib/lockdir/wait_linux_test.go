package lockdir

import (
	"regexp"
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

// withoutDigits returns a reason without the owner's age, which grows between two looks.
func withoutDigits(reason string) string {
	return regexp.MustCompile("[0-9]+").ReplaceAllString(reason, "")
}

// A waiter that links a lock keeps others out meanwhile, and wakes them when it unlinks it.
func TestAWaiterChecksTheAtomWithoutALockOfItsOwn(t *testing.T) {
	owner, other, newcomer := sleeper(t), sleeper(t), sleeper(t)
	held, x, z := slotted(owner, "x", 0), slotted(newcomer, "x", 0), slotted(newcomer, "z", 2)
	one, two := slotted(owner, "x", 1), slotted(owner, "x", 2)
	lock, reader := []string{held.Atom.Name().ActiveLock()}, []string{held.Atom.Name().ReaderLock(owner.PID)}
	slots := []string{motd.Slot(1).ActiveLock(), motd.Slot(2).ActiveLock()}
	type all = []locker.Request
	for claim, c := range map[string]struct {
		owners   []locker.Request
		newcomer locker.Request
		files    []string
		verdict  locker.Verdict
	}{
		"an owner":              {all{held}, slotted(newcomer, "x", 2), lock, locker.Busy},
		"a writer, of a reader": {all{held}, sharing(x), lock, locker.Busy},
		"a reader":              {all{sharing(held)}, x, reader, locker.Busy},
		"slots":                 {all{two, sharing(slotted(other, "y", 2))}, z, slots, locker.Full},
		"slots, of a reader":    {all{one}, sharing(slotted(newcomer, "z", 1)), slots[:1], locker.Full},
	} {
		k, r, pids := newLocker(t), c.newcomer, []int{}
		for _, r := range c.owners {
			wantVerdict(t, k, r, locker.Acquired)
			pids = append(pids, r.Owner.PID)
		}
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
		if err != nil || o.Verdict != c.verdict || o.Blocker != first.Blocker || withoutDigits(o.Reason) != withoutDigits(first.Reason) || links > 0 {
			t.Errorf("%s: %+v, %v, %d changes; at first %+v", claim, o, err, links, first)
		}
		var files []string
		for _, lock := range w.InWay.Locks {
			files = append(files, lock.Name)
		}
		if !slices.Equal(files, c.files) || !slices.Equal(w.InWay.Owners, pids) {
			t.Errorf("%s: %+v, want %v of %v", claim, w.InWay, c.files, pids)
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

func TestANewcomerWaitsOnlyIfTheVerdictMayChangeInTime(t *testing.T) {
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
