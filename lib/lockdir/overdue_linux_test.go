package lockdir

import (
	"errors"
	"strings"
	"testing"
	"time"

	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/test/support/helper"
)

// unlimited is a request without limits, for which an owner is overdue after a millisecond.
func unlimited(owner process.Identity) locker.Request {
	r := ask(owner)
	r.Limits, r.Notice = policy.Limits{}, time.Millisecond
	return r
}

func TestAnOverdueOwnerOfALockOrSlotInTheWayIsReportedOnce(t *testing.T) {
	for claim, c := range map[string]struct {
		holds, asks func(*locker.Request)
		want        locker.Verdict
	}{
		"the atom's own":       {want: locker.Busy},
		"a reader's":           {holds: func(r *locker.Request) { r.Shared = true }, want: locker.Busy},
		"a slot":               {holds: func(r *locker.Request) { r.Slots, r.Atom.Operand = 1, "other" }, asks: func(r *locker.Request) { r.Slots = 1 }, want: locker.Full},
		"while it is waited":   {asks: func(r *locker.Request) { r.Wait = 100 * time.Millisecond }, want: locker.Busy},
		"for a slot in a wait": {holds: func(r *locker.Request) { r.Slots, r.Atom.Operand = 1, "other" }, asks: func(r *locker.Request) { r.Slots, r.Wait = 1, 100*time.Millisecond }, want: locker.Full},
	} {
		k, owner, newcomer := newLocker(t), unlimited(sleeper(t)), unlimited(sleeper(t))
		for r, change := range map[*locker.Request]func(*locker.Request){&owner: c.holds, &newcomer: c.asks} {
			if change != nil {
				change(r)
			}
		}
		wantVerdict(t, k, owner, locker.Acquired)
		time.Sleep(2 * time.Millisecond)
		said := helper.Stderr(t, func() { wantVerdict(t, k, newcomer, c.want) })
		if strings.Count(said, "overdue: process ") != 1 || !strings.Contains(said, "adlock stop ") || !strings.Contains(said, string(owner.Atom.Name())) {
			t.Errorf("%s: said %q", claim, said)
		}
		if late := owner.Atom.Operator + " other is overdue: "; strings.Contains(said, late) != (c.want == locker.Full) {
			t.Errorf("%s: said %q, want the atom that is late", claim, said)
		}
		if said := helper.Stderr(t, func() { wantVerdict(t, k, newcomer, c.want) }); said != "" {
			t.Errorf("%s: said again %q", claim, said)
		}
	}
}

// A helper that the script runs has the script's standard error.
func TestAnAgentLeavesTheReportOfAnOverdueOwnerToAHelper(t *testing.T) {
	k := newLocker(t)
	wantVerdict(t, k, unlimited(sleeper(t)), locker.Acquired)
	time.Sleep(2 * time.Millisecond)
	asked := unlimited(sleeper(t))
	asked.AtOnce = true
	if _, err := k.Take(asked); !errors.Is(err, locker.ErrNotAtOnce) {
		t.Errorf("answered: %v", err)
	}
	asked.AtOnce = false
	helper.Stderr(t, func() { wantVerdict(t, k, asked, locker.Busy) })
	asked.AtOnce = true
	wantVerdict(t, k, asked, locker.Busy)
}
