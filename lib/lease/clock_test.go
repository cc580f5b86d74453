package lease

import (
	"testing"
	"time"

	"adlock/lib/policy"
)

func TestALastLockALittleInTheFutureCompletedNow(t *testing.T) {
	now := time.Now()
	for ago, want := range map[time.Duration]time.Duration{
		time.Second: time.Second, 0: 0, -time.Second: 0, -policy.FutureSlack: 0,
		-policy.FutureSlack - 1: -policy.FutureSlack - 1, -time.Hour: -time.Hour, // reported as invalid
	} {
		last := Last{}
		last.Completed = now.Add(time.Minute) // by another clock
		if got := now.Sub(last.at(now, ago).Completed); got != want {
			t.Errorf("%v ago: %v", ago, got)
		}
	}
}
