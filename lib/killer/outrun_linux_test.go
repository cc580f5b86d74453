package killer

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/process"
	"adlock/test/support/actor"
	"adlock/test/support/check"
	"adlock/test/support/must"
)

// keeping makes this process the keeper of a job.
func keeping(t *testing.T) *tree {
	t.Helper()
	self := must.Get(process.Find(os.Getpid()))(t)
	h := newTree(-1)
	t.Cleanup(h.close)
	h.keeper = self.Key()
	return h
}

func soon() time.Time { return time.Now().Add(actor.Patient) }

func TestTheSupervisorsNewChildrenAreRecordedAndKilledOnce(t *testing.T) {
	a, b := deaf(t, actor.Leads), deaf(t, actor.Leads)
	h := keeping(t)
	h.growing = 1
	var did []string
	k := Killer{
		Observe: func(s Signalled) { did = append(did, fmt.Sprint(s.PID, " ", s.Signal, " ", s.Command)) },
		Record: func(members []process.Identity) error {
			for _, id := range members {
				did = append(did, fmt.Sprint("recorded ", id.PID))
			}
			return nil
		},
	}
	actor.Undying(t, a)
	actor.Undying(t, b)
	begun := time.Now()
	if err := k.outrun(h, soon()); err != nil || time.Since(begun) > actor.Patient/2 {
		t.Errorf("after %v: %v", time.Since(begun), err)
	}
	if turn, err := k.signal(h, len(stages)); turn || err != nil {
		t.Error(turn, err)
	}
	slices.Sort(did)
	want := []string{
		fmt.Sprintf("%d KILL sleep", a.PID()), fmt.Sprintf("%d KILL sleep", b.PID()),
		fmt.Sprintf("recorded %d", a.PID()), fmt.Sprintf("recorded %d", b.PID()),
	}
	slices.Sort(want)
	check.Slices(t, "done is", did, want)
}

func TestTheSearchForNewChildrenEndsWhenThereAreNone(t *testing.T) {
	h, old := keeping(t), actor.Sleeper(t, actor.Leads)
	tried := map[int]bool{old.PID(): true}
	for i := range 2 {
		a := actor.Sleeper(t, actor.Leads)
		if found, err := (Killer{}).chase(h, tried); !found || err != nil || !tried[a.PID()] || len(tried) != i+2 || gone(old.PID()) {
			t.Errorf("found %v, tried %v, %v", found, tried, err)
		}
		if found, err := (Killer{}).chase(h, tried); found || err != nil {
			t.Errorf("found another member: %v", err)
		}
		a.Await()
	}
}

func TestASupervisorsChildIsKilledOnlyIfRecordedAndInTime(t *testing.T) {
	chase := func(k Killer, h *tree, _ *actor.Actor) error { h.growing = 1; return k.outrun(h, soon()) }
	strike := func(k Killer, h *tree, a *actor.Actor) error { return k.strike(h, a.PID()) }
	for claim, c := range map[string]struct {
		act           func(k Killer, h *tree, a *actor.Actor) error
		err, obstacle error
	}{
		"no new member was found": {func(k Killer, h *tree, _ *actor.Actor) error { return k.outrun(h, soon()) }, nil, nil},
		"the time is over": {func(k Killer, h *tree, _ *actor.Actor) error {
			h.growing = 1
			return k.outrun(h, time.Now())
		}, nil, nil},
		"it cannot be recorded": {func(k Killer, h *tree, a *actor.Actor) error {
			k.Record = (&journal{failed: unix.ENOSPC}).record
			return chase(k, h, a)
		}, unix.ENOSPC, nil},
		"it is not the keeper's": {func(k Killer, h *tree, a *actor.Actor) error { h.keeper.PID++; return strike(k, h, a) }, nil, nil},
		"it may not be signalled": {func(k Killer, h *tree, a *actor.Actor) error {
			h.fileUID, h.owner = os.Geteuid()+1, entryOf(a).Key() // only the owner must belong to the lock's user
			return strike(k, h, a)
		}, nil, errForeignOwner},
	} {
		a, h := actor.Sleeper(t, actor.Leads), keeping(t)
		var r recorder
		if err := c.act(r.killer(0), h, a); !errors.Is(err, c.err) || len(r.sent) > 0 || gone(a.PID()) {
			t.Errorf("%s: sent %v, %v", claim, r.sent, err)
		}
		if err := h.obstacle(); !errors.Is(err, c.obstacle) {
			t.Errorf("%s: the obstacle is %v", claim, err)
		}
	}
}

func TestAGroupIsKilledOnlyIfItsJobForksFasterThanTheScans(t *testing.T) {
	for growing, want := range map[int]bool{1: false, 3: false, 4: true} {
		a := actor.Sleeper(t, actor.Leads)
		h := newTree(-1)
		h.growing, h.whole, h.membership.Leader = growing, true, entryOf(a).Key()
		var r recorder
		if err := r.killer(0).outrun(h, soon()); err != nil || (r.to(-a.PID()) == "KILL") != want {
			t.Errorf("%d scans found more: sent %v, %v", growing, r.sent, err)
		}
	}
}

func TestAGroupIsKilledOnlyIfAllItsProcessesBelongToTheJob(t *testing.T) {
	a := actor.Sleeper(t, actor.Leads)
	led := entryOf(a).Key()
	self := must.Get(process.Find(os.Getpid()))(t)
	ended := actor.Sleeper(t, actor.Leads)
	empty := entryOf(ended).Key()
	ended.Kill()
	for claim, h := range map[string]*tree{
		"a stranger is in it":   {membership: process.Membership{Leader: led}},
		"its owner is dead":     {membership: process.Membership{Leader: led}, whole: true, orphans: true},
		"this process leads it": {membership: process.Membership{Leader: self.Key()}, whole: true},
		"it has no members":     {membership: process.Membership{Leader: empty}, whole: true},
	} {
		var r recorder
		if r.killer(0).killGroup(h) || len(r.sent) > 0 || gone(a.PID()) {
			t.Errorf("%s: sent %v", claim, r.sent)
		}
	}
	var r recorder
	b := actor.Sleeper(t, syscall.SysProcAttr{Setpgid: true, Pgid: a.PID()})
	if !r.killer(0).killGroup(&tree{membership: process.Membership{Leader: led}, whole: true}) || r.to(-a.PID()) != "KILL" {
		t.Errorf("sent %v", r.sent)
	}
	for _, a := range []*actor.Actor{a, b} {
		if a.Await(); a.ProcessState.Sys().(syscall.WaitStatus).Signal() != unix.SIGKILL {
			t.Errorf("ended by %v", a.ProcessState)
		}
	}
}

func TestAnEndingStopsAtAChildThatCannotBeRecorded(t *testing.T) {
	a := actor.Sleeper(t, actor.Leads)
	actor.Undying(t, a)
	h := keeping(t)
	h.membership.Roots[h.keeper] = true
	var late *actor.Actor
	calls := 0
	k := Killer{Pause: actor.Patient,
		Record: func([]process.Identity) error {
			if calls++; calls == 2 {
				return unix.ENOSPC
			}
			return nil
		},
		Observe: func(Signalled) {
			if late == nil {
				late = actor.Sleeper(t, actor.Leads)
			}
		},
	}
	if done, err := k.run(h, len(stages)); done || err != unix.ENOSPC || calls != 2 || gone(late.PID()) {
		t.Errorf("done %v, %v after %d records", done, err, calls)
	}
}
