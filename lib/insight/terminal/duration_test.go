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

func TestAnAgeIsRoundedDownAndWhatIsLeftIsRoundedUp(t *testing.T) {
	for d, want := range map[time.Duration][2]string{
		0: {"0s", "0s"}, 557 * time.Millisecond: {"557ms", "557ms"}, 1299 * time.Millisecond: {"1.2s", "1.3s"},
		9990 * time.Millisecond: {"9.9s", "10s"}, 15*time.Minute - time.Millisecond: {"14m59s", "15m"},
		2*time.Hour + 119*time.Second: {"2h1m", "2h2m"}, limit.Never: {"never", "never"},
	} {
		if got := [2]string{Age(d), Left(d)}; got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}
