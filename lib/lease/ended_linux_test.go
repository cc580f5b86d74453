package lease

import (
	"errors"
	"os/exec"
	"slices"
	"testing"
	"time"

	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/lib/runlog"
	"adlock/test/support/must"
)

// The newcomer may read the lock of an owner that then releases it and exits, before the newcomer checks
// whether the owner is alive.
func TestAnOwnerThatReleasesAndExitsOnRequestCountsAsEnded(t *testing.T) {
	owner, a := sleeper(t)
	node := must.Get(NodeName())(t)
	held := Snapshot{Now: time.Now(), Held: true, Age: 2 * time.Hour, Owner: Record{Node: node, Taken: time.Now().Add(-2 * time.Hour)}}
	held.Owner.Atom, held.Owner.Owner, held.Owner.Token = odd, owner, record.NewToken()
	released := Snapshot{Now: time.Now(), Last: Last{Token: held.Owner.Token, Node: node}}
	released.Last.Completed = time.Now()
	p := &scriptedPlace{looks: []Snapshot{held, released}, await: a.Kill}
	l, log := behind(p, held), &runlog.Log{Dir: t.TempDir(), Host: "h"}
	l.Recorder = locker.Recorder{Log: log}
	r := newcomer(0)
	r.Limits = policy.Limits{IfElapsed: 2 * time.Hour, ExpireAfter: time.Hour, Source: policy.Said}
	defer take(t, l, r)() // the owner's stamp does not deny the newcomer that asked for its end
	if kinds := recorded(log); !slices.Equal(kinds, []runlog.Kind{runlog.Expire, runlog.Takeover, runlog.Acquire}) {
		t.Errorf("the runlog has %v", kinds)
	}
}

func TestTheIdleWatchSeesProcessesThatCarryTheMark(t *testing.T) {
	start := func(env ...string) process.Identity {
		c := exec.Command("sleep", "600")
		c.Env = env
		must.Do(t, c.Start())
		t.Cleanup(func() { _, _ = c.Process.Kill(), c.Wait() })
		return must.Get(process.Of(c.Process.Pid))(t)
	}
	held := &heldLease{}
	held.record.Owner, held.record.Token = start(), "feed"
	orphan := start(process.MarkVariable + "=1 feed file\n")
	if seen := must.Get(held.members())(t); !slices.ContainsFunc(seen, func(e process.Entry) bool { return e.PID == orphan.PID }) {
		t.Errorf("seen: %+v", seen)
	}
}

// The owner may be dead: then a newcomer passes it after the owner's lease, and not after its own.
func TestAnOwnerHasItsOwnLeaseToMakeWay(t *testing.T) {
	r, v := newcomer(0), locker.View{}
	q := queue{Locker: &Locker{Store: &scripted{}}, r: &r, seen: heldElsewhere()}
	q.held = &heldLease{ctx: t.Context(), place: &scriptedPlace{}, record: Record{Lease: 15 * time.Second}}
	q.seen.Owner.Lease = time.Hour
	if _, err := q.expire(&v); err != nil || q.asked.until < process.Boottime()+time.Hour {
		t.Errorf("%v, in %v it is stuck", err, q.asked.until-process.Boottime())
	}
}

// With --jitter a start may come to the store after a later one. A waiter's record does not say when it was asked for.
func TestAReplacingStartDoesNotEndAJobAskedForLater(t *testing.T) {
	for taken, want := range map[time.Duration]locker.Verdict{0: locker.Acquired, time.Minute: locker.Busy, time.Hour: locker.Acquired} {
		seen := heldElsewhere()
		if seen.Age = taken; taken == 0 {
			seen.Owner.Taken = time.Time{}
		}
		l, r := behind(&scriptedPlace{}, seen), newcomer(time.Hour)
		r.Limits, r.WaitSince = policy.Limits{Source: policy.Said}, process.Boottime()-10*time.Minute
		outcome, err := l.Take(r)
		if err != nil || outcome.Verdict != want || outcome.Endless != (want == locker.Busy) {
			t.Errorf("taken %v ago: %s, endless %v, %v", taken, outcome.Verdict, outcome.Endless, err)
		}
		_ = l.Release(locker.ReleaseRequest{}) // nothing is held if it is busy
	}
}

// Cloned machines have one id: an owner in another boot may live on another machine.
func TestAnOwnerOfAnotherBootCountsAsAlive(t *testing.T) {
	dead, a := sleeper(t)
	a.Kill()
	elsewhere, _ := sleeper(t)
	elsewhere.Boot = "another"
	for owner, want := range map[process.Identity]policy.Owner{elsewhere: policy.Lives, dead: policy.Gone} {
		seen := &Snapshot{Held: true, Owner: Record{Record: record.Record{Owner: owner, Token: "t"}, Node: "n", Taken: time.Now()}}
		if got := (&Locker{}).ownerOf(seen); got != want {
			t.Errorf("an owner of the boot %q is %v, want %v", owner.Boot, got, want)
		}
	}
}

func TestAnOwnerThatLeavesAFullStoreKeepsTheTickOfACountedRun(t *testing.T) {
	full := fault.New(fault.IO, "store", "no space")
	for _, kept := range []bool{false, true} {
		p := &scriptedPlace{full: full}
		held := &heldLease{place: p, record: Record{Lease: time.Minute}, most: time.Minute, tick: policy.Tick{Period: time.Hour}, cancel: func() {}}
		held.renewed.Store(int64(process.Boottime()))
		if left, err := held.leave(&Last{Kept: kept}); !left || !errors.Is(err, full) || p.gave != kept {
			t.Errorf("kept %v: left %v, tick given back %v, %v", kept, left, p.gave, err)
		}
	}
	p := &scriptedPlace{full: full}
	if err := behind(p, free()).Forget(odd.Name()); !errors.Is(err, full) || !p.left {
		t.Errorf("tune --reset: left %v, %v", p.left, err)
	}
}

func TestAPassClockBeforeTheLockMakesNoNegativeAge(t *testing.T) {
	now := time.Now()
	r := &locker.Request{Atom: odd, Now: now.Add(-time.Hour)}
	v, err := behind(nil, free()).view(r, &Snapshot{Held: true, Age: time.Minute, Owner: Record{Record: record.Record{Atom: odd}, Taken: now}})
	if err != nil || !v.Active.Held || v.Active.Age != 0 {
		t.Errorf("%+v, %v", v.Active, err)
	}
}
