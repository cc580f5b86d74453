package policy

import (
	"strings"
	"testing"
	"time"

	"adlock/lib/limit"
)

func TestIfElapsedAsLongAsTheSchedulePeriodDrawsAWarning(t *testing.T) {
	const want = "asked for every 1m, and IfElapsed 1m counts from completion: every second start is denied; --from-start (ADLOCK_FROM_START=1) counts from the start"
	if got := (Limits{IfElapsed: minute}).Skipping(Pace{Period: minute + 200*time.Millisecond, Runtime: 3 * time.Second}); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSkippingGivesAPeriodBelowASecondInMilliseconds(t *testing.T) {
	for period, want := range map[time.Duration]string{100*time.Millisecond + 300*time.Microsecond: "asked for every 100ms, ", 999600 * time.Microsecond: "asked for every 1s, ", time.Second: "asked for every 1s, "} {
		if got := (Limits{IfElapsed: period}).Skipping(Pace{Period: period}); !strings.HasPrefix(got, want) {
			t.Errorf("%v: %q", period, got)
		}
	}
}

func TestSkippingWarnsOnlyIfFromStartWouldHelp(t *testing.T) {
	for _, c := range []struct {
		claim                      string
		ifElapsed, period, runtime time.Duration
		told                       bool
	}{
		{"every minute, a minute", minute, minute, time.Second, true},
		{"cron was a second late", minute, 61 * time.Second, 100 * time.Millisecond, true},
		{"an interval that is a little shorter", 55 * minute, 60 * minute, 10 * minute, true},
		{"and leaves room", 55 * minute, 60 * minute, 2 * minute, false},
		{"an interval that is meant to deny", 15 * minute, minute, time.Second, false},
		{"a run that is longer than the period", minute, minute, 5 * minute, false},
		{"no interval", 0, minute, time.Second, false},
		{"no interval, and a period below a second", 0, time.Second / 2, 0, false},
		{"once only", limit.Never, minute, time.Second, false},
		{"nothing is known", minute, 0, 0, false},
		{"a run as long as the period", minute, minute, minute, false},
		{"as early as the slack", minute, 54 * time.Second, time.Second, true},
		{"earlier", minute, 54*time.Second - 1, time.Second, false},
		{"a pause that is long enough", minute, 62 * time.Second, time.Second, false},
		{"one that is not", minute, 62*time.Second - 1, time.Second, true},
	} {
		if got := (Limits{IfElapsed: c.ifElapsed}).Skipping(Pace{c.period, c.runtime}); (got != "") != c.told {
			t.Errorf("%s: %q", c.claim, got)
		}
	}
}
