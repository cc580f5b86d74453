package locker

import (
	"testing"
	"time"

	"adlock/lib/process"
)

func TestWaitingBeginsNowOrAtWaitSince(t *testing.T) {
	before := process.Boottime()
	for _, c := range []struct {
		r        Request
		min, max time.Duration
	}{
		{Request{}, 0, 0},
		{Request{WaitSince: 5}, 5, 5},
		{Request{Wait: time.Hour, WaitSince: 5}, 5, 5},
		{Request{Wait: 1}, before, before + time.Minute},
	} {
		if began := NewWaiting(&c.r).began; began < c.min || began > c.max {
			t.Errorf("%+v began at %v, want %v to %v", c.r, began, c.min, c.max)
		}
	}
}
