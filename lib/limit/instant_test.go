package limit

import (
	"testing"
	"time"
)

func TestInstantWritesTimesInUTC(t *testing.T) {
	east := time.FixedZone("east", 3600)
	for want, at := range map[string]time.Time{
		"":                               {},
		"2026-11-19T23:00:00.000000001Z": time.Date(2026, 11, 20, 0, 0, 0, 1, east),
		"12026-11-20T00:00:00Z":          time.Date(12026, 11, 20, 0, 0, 0, 0, time.UTC),
	} {
		if got := Instant(at); got != want {
			t.Errorf("%v: %q, want %q", at, got, want)
		}
	}
}
