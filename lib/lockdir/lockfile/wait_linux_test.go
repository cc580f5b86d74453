package lockfile

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/limit"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/test/support/helper"
	"adlock/test/support/intercept"
	"adlock/test/support/must"
)

var motdLock = motd.Name().ActiveLock()

func planted(t *testing.T, d *Dir, file string) {
	t.Helper()
	must.Do(t, os.WriteFile(d.Path(file), nil, 0o600))
}

// within tells whether a descriptor is the directory or a file in it.
func within(d *Dir, fd int) bool {
	path, _ := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	return path == d.Path("") || filepath.Dir(path) == d.Path("")
}

func TestAWaiterChecksAgainAtOnceAndWhenItsTimeIsUp(t *testing.T) {
	d, r := newDir(t), locker.Request{Atom: motd}
	r.Wait = time.Second
	w := NewWaiting(d, &r, nil)
	defer w.Close(false)
	w.InWay = InWay{Locks: []Standing{{Name: "lock.x"}}, Owners: []int{os.Getpid()}}
	busy := locker.Outcome{Verdict: locker.Busy}
	if w.Spent() != 0 {
		t.Errorf("it has waited %v before it began", w.Spent())
	}
	if !w.Next(busy) || !w.watch.Tells() {
		t.Fatal("the first look sets no watch")
	}
	if !w.Next(busy) || w.Left() > 0 {
		t.Errorf("%v are left when it looks again", w.Left())
	}
	if w.Next(busy) {
		t.Error("it looks again though its time is up")
	}
	if spent := w.Spent(); spent < r.Wait || spent > helper.Patience {
		t.Errorf("it has waited %v", spent)
	}
	if exists(d, motd.Name().Line()) {
		t.Error("it waits in a line")
	}
}

func TestAWaitEndsWhenItsAskerClosesThePipe(t *testing.T) {
	r, says, most, more := locker.Request{Atom: motd}, (*os.File)(nil), uint64(0), true
	r.Wait = time.Hour
	r.Asker, says, _ = os.Pipe()
	defer r.Asker.Close()
	w := NewWaiting(newDir(t), &r, func(locker.Outcome) { says.Close() })
	intercept.Run(t, func() {
		defer w.Close(false)
		for range 3 { // the first sets the watch, the third has nothing left to wait for
			more = w.Next(locker.Outcome{Verdict: locker.TooSoon})
		}
	}, func(c intercept.Call) unix.Errno { most = max(most, c.Args[1]); return 0 }, unix.SYS_PPOLL)
	if more || most != 2 {
		t.Errorf("it waits on: %v; %d descriptors were polled", more, most)
	}
}

// If an owner cannot be watched, its lock may become free without a kernel event.
func TestAWaiterExpectsAnEventOnlyFromALivingOwner(t *testing.T) {
	lock := &Active{File: atom.File{Kind: atom.ActiveLock, Name: motd.Name()}, Record: record.Record{Owner: process.Identity{PID: 7}}}
	for claim, c := range map[string]struct {
		seen policy.Active
		want bool
	}{
		"it lives":              {policy.Active{Owner: policy.Lives}, true},
		"it is an ancestor":     {policy.Active{Owner: policy.Ancestor}, true},
		"only its pid is known": {policy.Active{Owner: policy.Untouched}, true},
		"it is dead":            {policy.Active{Owner: policy.Gone}, false},
		"its job lives":         {policy.Active{Owner: policy.Orphaned}, false},
		"it is elsewhere":       {policy.Active{Owner: policy.Unknown}, false},
		"its lock is empty":     {policy.Active{Empty: true}, false},
	} {
		var i InWay
		i.Add(lock, c.seen)
		if i.hasEvents() != c.want || len(i.Locks) != 1 {
			t.Errorf("%s: %+v", claim, i)
		}
	}
}

func TestAWaiterChecksAgainWithoutAKernelEvent(t *testing.T) {
	d := newDir(t)
	tells := NewWatch(d)
	defer tells.Close()
	var silent Watch
	intercept.Run(t, func() { silent = NewWatch(d) }, func(intercept.Call) unix.Errno { return unix.EMFILE }, unix.SYS_SIGNALFD4)
	if !tells.Tells() || silent.Tells() {
		t.Fatal("no such watches")
	}
	one := InWay{Locks: []Standing{{Name: "lock.x"}}, Owners: []int{7}}
	for _, c := range []struct {
		w           Watch
		inWay       InWay
		o           locker.Outcome
		least, most time.Duration
	}{
		{tells, one, locker.Outcome{Verdict: locker.Busy}, 5 * time.Second, 5 * time.Second},
		{tells, one, locker.Outcome{Verdict: locker.Full}, 5 * time.Second, 5 * time.Second},
		{tells, one, locker.Outcome{Verdict: locker.Busy, Recheck: 50 * time.Millisecond}, 51 * time.Millisecond, 51 * time.Millisecond},
		{tells, one, locker.Outcome{Verdict: locker.Busy, Recheck: 1}, time.Millisecond + 1, time.Millisecond + 1},
		{tells, one, locker.Outcome{Verdict: locker.Busy, Recheck: time.Hour}, 5 * time.Second, 5 * time.Second},
		{silent, one, locker.Outcome{Verdict: locker.Busy}, 100 * time.Millisecond, time.Second},
		{tells, InWay{}, locker.Outcome{Verdict: locker.Full}, 100 * time.Millisecond, time.Second},
		{tells, InWay{Locks: []Standing{{Name: "lock.x"}, {Name: "lock.y"}}, Owners: []int{7}}, locker.Outcome{Verdict: locker.Full}, 100 * time.Millisecond, time.Second},
		{tells, InWay{}, locker.Outcome{Verdict: locker.TooSoon}, 5 * time.Second, 5 * time.Second},
		{tells, InWay{}, locker.Outcome{Verdict: locker.TooSoon, Recheck: limit.Never}, 5 * time.Second, 5 * time.Second},
	} {
		w := Waiting{watch: c.w, InWay: c.inWay}
		for range 200 {
			if got := w.pollAfter(c.o, false); got < c.least || got > c.most {
				t.Fatalf("%v of %+v, want %v to %v", got, c.o, c.least, c.most)
			}
		}
	}
	first, w := time.Duration(0), Waiting{watch: silent}
	for range 200 {
		if got := w.pollAfter(locker.Outcome{}, false); first == 0 {
			first = got
		} else if got != first {
			return
		}
	}
	t.Error("all look at the same time")
}

// callsOf returns the system calls of a wait for the locks, each run of equal calls as one: it polls, and
// looks for the lock (stat). It calls see before each of them, with the calls up to it.
func callsOf(t *testing.T, d *Dir, locks []Standing, most time.Duration, see func(calls string)) string {
	t.Helper()
	var calls []string
	kinds := map[int]string{unix.SYS_PPOLL: "poll", unix.SYS_NEWFSTATAT: "stat"}
	var watches atomic.Bool
	intercept.Run(t, func() {
		w := NewWatch(d)
		defer w.Close()
		if !w.Tells() {
			t.Error("no watch")
			return
		}
		see("")
		watches.Store(true)
		w.Wait(locks, nil, nil, most)
		watches.Store(false)
	}, func(c intercept.Call) unix.Errno {
		if !watches.Load() || c.Number != unix.SYS_PPOLL && !within(d, c.FD(0)) {
			return 0
		}
		calls = slices.Compact(append(calls, kinds[c.Number])) // a poll that a signal interrupts is repeated
		see(strings.Join(calls, " "))
		return 0
	}, unix.SYS_PPOLL, unix.SYS_NEWFSTATAT)
	return strings.Join(calls, " ")
}

// denied returns a directory with a lock, and with those of the slots from the second on.
func denied(t *testing.T, slots int) (*Dir, []Standing) {
	t.Helper()
	d, files := newDir(t), []string{motdLock}
	for n := 2; n <= slots; n++ {
		files = append(files, motd.Slot(n).ActiveLock())
	}
	for _, file := range files {
		planted(t, d, file)
	}
	return d, stands(t, d, files...)
}

func TestAWaiterNoticesWhenALockInItsWayIsRemoved(t *testing.T) {
	goes := func(d *Dir) { must.Do(t, os.Remove(d.Path(motdLock))) }
	comes := func(d *Dir) {
		planted(t, d, "lock.other")
		must.Do(t, os.Rename(d.Path("lock.other"), d.Path(motdLock)))
	}
	other := func(d *Dir) { planted(t, d, "lock.other"); must.Do(t, os.Remove(d.Path("lock.other"))) }
	for claim, c := range map[string]struct {
		slots int
		acts  map[string][]func(*Dir) // what other processes do, by the calls before it
		want  string
	}{
		"its lock was removed":             {0, map[string][]func(*Dir){"": {goes}}, "poll stat"},
		"another lock replaced it at once": {0, map[string][]func(*Dir){"": {goes, comes}}, "poll stat"},
		"another lock replaced it late":    {0, map[string][]func(*Dir){"": {goes}, "poll": {comes}}, "poll stat"},
		"removed before a check":           {0, map[string][]func(*Dir){"": {other}, "poll stat": {goes}}, "poll stat"},
		"removed after a check":            {0, map[string][]func(*Dir){"": {other}, "poll stat poll": {goes}}, "poll stat poll stat"},
		"replaced after a check":           {0, map[string][]func(*Dir){"": {other}, "poll stat poll": {goes, comes}}, "poll stat poll stat"},
		"one of two locks was removed":     {2, map[string][]func(*Dir){"": {goes}}, "poll stat"},
		"one of two locks was replaced":    {2, map[string][]func(*Dir){"": {goes, comes}}, "poll stat"},
	} {
		d, locks := denied(t, c.slots)
		do := func(calls string) {
			for _, act := range c.acts[calls] {
				act(d)
			}
			delete(c.acts, calls)
		}
		if got := callsOf(t, d, locks, time.Hour, do); got != c.want {
			t.Errorf("%s: %s, want %s", claim, got, c.want)
		}
	}
}

// The waiter may be denied as too soon by now.
func TestAWaiterChecksInTimeDespiteConstantEvents(t *testing.T) {
	d, locks := denied(t, 1)
	others := func(string) { planted(t, d, "lock.other"); must.Do(t, os.Remove(d.Path("lock.other"))) }
	began := time.Now()
	callsOf(t, d, locks, pollLeast, others)
	if took := time.Since(began); took < pollLeast || took > helper.Patience {
		t.Errorf("it looks after %v, want %v", took, pollLeast)
	}
}
