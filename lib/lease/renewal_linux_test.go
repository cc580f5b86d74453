package lease

import (
	"context"
	"errors"
	"testing"
	"time"

	"adlock/lib/process"
)

// pausesOf lets tend run through times that are over at once, until it has asked for n of them, and
// returns them. renew is the answer to each renewal.
func pausesOf(t *testing.T, length time.Duration, n int, renew func() error) (asked []time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	held := &heldLease{place: &scriptedPlace{lease: length, renew: renew}, ctx: ctx, cancel: cancel}
	held.renewed.Store(int64(process.Boottime()))
	held.newTimer = func(d time.Duration) *time.Timer {
		if asked = append(asked, d); len(asked) == n {
			cancel()
			return time.NewTimer(time.Hour)
		}
		return time.NewTimer(0)
	}
	held.tended.Add(1)
	held.tend()
	return asked
}

func TestALeaseIsRenewedAfterAThirdOfIt(t *testing.T) {
	for i, d := range pausesOf(t, time.Hour, 3, func() error { return nil }) {
		if d > 20*time.Minute || d < 19*time.Minute {
			t.Errorf("renewal %d comes after %v", i+1, d)
		}
	}
}

// The store may answer again before the job has to be ended, at two thirds of the lease.
func TestARenewalThatFailsIsTriedAgainSoon(t *testing.T) {
	asked := pausesOf(t, time.Hour, 4, func() error { return errors.New("no answer") })
	for i, d := range asked[1:] {
		if d > 2*time.Minute {
			t.Errorf("trial %d comes after %v", i+2, d)
		}
	}
}
