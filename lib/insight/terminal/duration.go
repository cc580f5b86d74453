package terminal

import (
	"strconv"
	"strings"
	"time"

	"adlock/lib/limit"
)

// Duration is d as text: at most two units, and a fraction below ten seconds. limit.Parse reads that text unless d < 0.
func Duration(d time.Duration) string {
	switch {
	case d == limit.Never:
		return "never"
	case d < 0:
		return "-" + Duration(-max(d, -limit.Never))
	case d == 0:
		return "0s"
	case d < time.Second:
		return strconv.FormatInt(max(1, d.Milliseconds()), 10) + "ms"
	case d < 10*time.Second:
		return strings.TrimSuffix(strconv.FormatFloat(d.Seconds(), 'f', 1, 64), ".0") + "s"
	}
	return limit.Format(d.Round(step(d)))
}

// Age is Duration for an age, or for how long something lasted: rounded down, like limit.FormatAge.
func Age(d time.Duration) string {
	if d == limit.Never {
		return Duration(d)
	}
	return Duration(d.Truncate(step(d)))
}

func Ago(d time.Duration) string {
	if d <= -time.Second { // two clocks of one machine differ by less
		return "in the future"
	}
	return Age(max(0, d)) + " ago"
}

// Left is Duration for a time that remains: rounded up, like limit.FormatLeft.
func Left(d time.Duration) string { return Duration(limit.Up(d, step(d))) }

// step is the unit to which d is rounded: 1ms below a second, 100ms below ten, else the smaller of the two units shown.
func step(d time.Duration) time.Duration {
	const day = 24 * time.Hour
	switch {
	case d < time.Second:
		return time.Millisecond
	case d < 10*time.Second:
		return 100 * time.Millisecond
	case d < time.Hour:
		return time.Second
	case d < day:
		return time.Minute
	case d < 7*day:
		return time.Hour
	}
	return day
}
