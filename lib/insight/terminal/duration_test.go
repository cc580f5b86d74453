package terminal

import (
	"testing"
	"time"

	"adlock/lib/limit"
)

func TestDurationHasTwoUnitsAtMost(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                                     "0s",
		1500 * time.Nanosecond:                "1ms",
		250 * time.Millisecond:                "250ms",
		3 * time.Second:                       "3s",
		3250 * time.Millisecond:               "3.2s",
		62*time.Second + 600*time.Millisecond: "1m3s",
		time.Hour - 200*time.Millisecond:      "1h",
		3*time.Hour + 29*time.Minute + 40*time.Second: "3h30m",
		26*time.Hour + 40*time.Minute:                 "1d3h",
		24 * 30 * time.Hour:                           "4w2d",
		-90 * time.Second:                             "-1m30s",
		limit.Never:                                   "never",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%d ns: %s, want %s", d, got, want)
		}
	}
}
