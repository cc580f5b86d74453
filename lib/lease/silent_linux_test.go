package lease

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/record"
	"adlock/lib/runlog"
	"adlock/test/support/must"
	"adlock/test/support/need"
)

// silentElsewhere is what a newcomer finds if the owner, or waiter, has sent no heartbeat for its whole lease.
func silentElsewhere(owns bool) Snapshot {
	seen := heldElsewhere()
	seen.Silent = true
	if !owns {
		seen.Owner.Taken = time.Time{}
	}
	return seen
}

// A run would watch the silent owner for its lease, and then acquire the atom.
func TestADryRunForeseesTheTakeoverFromASilentOwner(t *testing.T) {
	slot := false
	l := &Locker{Lease: time.Minute, Store: &scripted{look: func(_ context.Context, name atom.Name, _ int) (Snapshot, error) {
		if name.IsSlot() == slot {
			return silentElsewhere(true), nil
		}
		return free(), nil
	}}}
	r := newcomer(0)
	r.Slots = 1
	d, err := l.DryRun(&r)
	reason := d.Reason()
	if !d.Step.Granted() || err != nil || !strings.HasPrefix(reason, "free: its owner has given no sign of life") {
		t.Errorf("%q, %v", reason, err)
	}
	listed := l.entry(&Listed{Name: odd.Name(), Snapshot: silentElsewhere(true)})
	if d := listed.Decide(policy.Terms{}); !d.Step.Granted() || d.Reason() != reason {
		t.Errorf("status says %q", d.Reason())
	}
	slot = true
	if d, err := l.DryRun(&r); !d.Step.Granted() || err != nil {
		t.Errorf("its slot: %q, %v", d.Reason(), err)
	}
}

func TestADeadWaiterIsNotListedAsTheOwner(t *testing.T) {
	for what, test := range map[string]struct {
		seen Snapshot
		held bool
	}{
		"a dead waiter": {silentElsewhere(false), false}, "a silent owner": {silentElsewhere(true), true}, "an owner": {heldElsewhere(), true},
	} {
		if e := (&Locker{Store: &scripted{}}).entry(&Listed{Name: odd.Name(), Snapshot: test.seen}); e.Active.Held != test.held {
			t.Errorf("%s: held %v", what, e.Active.Held)
		}
	}
}

func TestTheAtomOfDoctorIsNotListedEvenIfHeld(t *testing.T) {
	name := must.Get(atom.New(atom.NamedProgram, "h", trialOperator, trialOperand))(t).Name()
	l := &Locker{Store: &scripted{found: []Listed{{Name: name, Snapshot: heldElsewhere()}}}}
	if entries, _, _ := l.List(); len(entries) > 0 {
		t.Errorf("listed: %+v", entries)
	}
}

// The pause is known without the store.
func TestAPausedHostDeniesEvenIfItsStoreIsUnreachable(t *testing.T) {
	need.Root(t)
	locker.PauseFile = t.TempDir() + "/pause"
	must.Do(t, os.WriteFile(locker.PauseFile, record.NewPause(time.Hour, "").Bytes(), 0o644))
	if o, err := (&Locker{Store: &scripted{}}).Take(newcomer(0)); err != nil || o.Verdict != locker.Paused {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestAStoreMayTakeAsLongAsALeaseToReportAnAge(t *testing.T) {
	l := &Locker{Lease: time.Hour, Store: &scripted{look: func(ctx context.Context, _ atom.Name, _ int) (Snapshot, error) {
		if until, _ := ctx.Deadline(); time.Until(until) < time.Minute {
			t.Errorf("asked until %v", until)
		}
		return free(), nil
	}}}
	_, _, err := l.Completed(odd)
	must.Do(t, err)
}

func TestAWaitForAnAtomOfAStoreIsLogged(t *testing.T) {
	completed := free() // another owner has completed meanwhile, which ends the wait
	completed.Last.Completed = completed.Now
	l := behind(nil, heldElsewhere())
	l.Recorder = locker.Recorder{Log: &runlog.Log{Dir: t.TempDir(), Host: "h", Store: "store"}}
	l.Store.(*scripted).look = func(_ context.Context, _ atom.Name, n int) (Snapshot, error) {
		if n == 1 {
			return heldElsewhere(), nil
		}
		return completed, nil
	}
	r := newcomer(time.Minute)
	r.Limits.IfElapsed = 2 * time.Hour
	if outcome, err := l.Take(r); err != nil || outcome.Verdict != locker.TooSoon {
		t.Errorf("%+v, %v", outcome, err)
	}
	if kinds := recorded(l.Log); !slices.Equal(kinds, []runlog.Kind{runlog.Wait, runlog.Deny}) {
		t.Errorf("the runlog has %s", kinds)
	}
}
