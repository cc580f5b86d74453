package lease

import (
	"strings"
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/runlog"
)

// silentElsewhere is what a newcomer finds if the owner, or waiter, has sent no heartbeat for its
// whole lease.
func silentElsewhere(owns bool) Snapshot {
	seen := heldElsewhere()
	seen.Silent = true
	if !owns {
		seen.Owner.Taken = time.Time{}
	}
	return seen
}

// A run would watch the owner, and take the atom.
func TestADryRunSaysWhatARunDoesAboutASilentOwner(t *testing.T) {
	slot := false
	l := &Locker{Lease: time.Minute, Store: &scripted{look: func(name atom.Name) Snapshot {
		if name.IsSlot() == slot {
			return silentElsewhere(true)
		}
		return Snapshot{Now: time.Now()}
	}}}
	r := locker.NewRequest()
	r.Atom, r.Slots = odd, 1
	granted, reason, err := l.DryRun(&r)
	if !granted || err != nil || !strings.HasPrefix(reason, "free: its owner has given no sign of life") {
		t.Errorf("%v, %q, %v", granted, reason, err)
	}
	listed := l.entry(&Listed{Name: odd.Name(), Snapshot: silentElsewhere(true)})
	if d := listed.Decide(policy.Terms{}); !d.Step.Granted() || d.Reason() != reason {
		t.Errorf("status says %q", d.Reason())
	}
	slot = true
	if granted, reason, err := l.DryRun(&r); !granted || err != nil {
		t.Errorf("its slot: %v, %q, %v", granted, reason, err)
	}
}

func TestADeadWaiterIsListedAsNoOwner(t *testing.T) {
	l := &Locker{Lease: time.Minute, Store: &scripted{}}
	for seen, owns := range map[*Snapshot]bool{
		ptr(silentElsewhere(false)): false, ptr(silentElsewhere(true)): true, ptr(heldElsewhere()): true,
	} {
		if e := l.entry(&Listed{Name: odd.Name(), Snapshot: *seen}); e.Active.Held != owns {
			t.Errorf("silent %v, waits %v: held %v", seen.Silent, seen.Owner.Taken.IsZero(), e.Active.Held)
		}
	}
}

func ptr[T any](of T) *T { return &of }

func TestTheRunlogShowsAWaiterForAStore(t *testing.T) {
	rec := locker.Recorder{Log: &runlog.Log{Dir: t.TempDir(), Host: "h", Store: "store"}}
	looks := 0
	l := &Locker{Lease: time.Minute, Recorder: rec, Store: &scripted{
		look: func(atom.Name) Snapshot {
			if looks++; looks == 1 {
				return heldElsewhere()
			}
			completed := Snapshot{Now: time.Now()} // an hour ago, which ends the wait
			completed.Last.Completed = completed.Now
			return completed
		},
		enter: func(atom.Name) (Place, Snapshot) { return nil, heldElsewhere() },
	}}
	r := locker.NewRequest()
	r.Atom, r.Owner, r.Wait, r.Limits.IfElapsed = odd, process.Here(), time.Minute, 2*time.Hour
	if outcome, err := l.Take(r); err != nil || outcome.Verdict != locker.TooSoon {
		t.Errorf("%+v, %v", outcome, err)
	}
	var kinds []string
	for e := range rec.Log.Newest(1 << 20) {
		kinds = append([]string{string(e.Kind)}, kinds...)
	}
	if got := strings.Join(kinds, " "); got != "wait deny" {
		t.Errorf("the runlog has %s", got)
	}
}
