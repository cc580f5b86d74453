package policy

import (
	"cmp"
	"time"

	"adlock/lib/limit"
)

// Tick is a period in which an atom runs once, on one of several hosts (--once-per). Each host computes the tick
// from the host's own clock. So a crontab line asks for the same tick on every host, although hosts whose clocks
// differ ask for it at different moments.
//
// Ticks of whole days are days of the calendar in the host's time zone. When summer time begins, days of 24 hours
// would put two runs at the same local time into one tick. Other ticks are periods since the epoch.
type Tick struct {
	Period time.Duration // whole seconds; 0: no tick is asked for
	Number int

	zone *time.Location // of the host; nil: UTC
}

const aDay = 24 * time.Hour

// firstDay is a Monday, so that a week begins on Monday.
var firstDay = time.Date(1969, time.December, 29, 0, 0, 0, 0, time.UTC)

// TickAt returns the tick of the moment at. Ticks of days begin at midnight in at's time zone. Period 0 means no tick.
func TickAt(at time.Time, period time.Duration) Tick {
	if period == 0 {
		return Tick{}
	}
	if !isDays(period) {
		return Tick{Period: period, Number: int(at.UnixNano() / int64(period)), zone: at.Location()}
	}
	year, month, day := at.Date()
	date := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	return Tick{Period: period, Number: int(date.Sub(firstDay) / period), zone: at.Location()}
}

func isDays(period time.Duration) bool { return period > 0 && period%aDay == 0 }

func (t Tick) Asked() bool { return t.Period > 0 }

// Began returns when the tick began, by the clock of the host that asked.
func (t Tick) Began() time.Time { return t.began(t.Period, t.Number) }

func (t Tick) Next() time.Time { return t.began(t.Period, t.Number+1) }

func (t Tick) began(period time.Duration, number int) time.Time {
	if !isDays(period) {
		return time.Unix(0, int64(number)*int64(period))
	}
	return limit.Local(firstDay.AddDate(0, 0, number*int(period/aDay)), cmp.Or(t.zone, time.UTC))
}

// tickLife is the number of periods for which a claim is remembered. The clocks of hosts are assumed to differ by less.
const tickLife = 10

// Life returns how long a claim of the tick has to be remembered.
func (t Tick) Life() time.Duration { return tickLife * t.Period }

// Outlived reports whether a claim of that period and number may be forgotten once this tick has begun.
func (t Tick) Outlived(period time.Duration, number int) bool {
	return !t.began(period, number+tickLife).After(t.Began())
}

func (t Tick) used() string {
	return "ran already " + t.in() + "; the next begins at " + t.Next().Format(time.DateTime)
}

func (t Tick) in() string {
	return "in this tick of " + limit.Format(t.Period) + ", which began at " + t.Began().Format(time.DateTime)
}

// TickUsed reports whether the newcomer is denied because its tick was used. Waiting does not help then.
func (d Decision) TickUsed() bool { return d.Step == TooSoon && d.used }
