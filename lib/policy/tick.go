package policy

import (
	"time"

	"adlock/lib/limit"
)

// Tick is one of the periods in each of which an atom runs once, on one of the hosts
// (--once-per): a whole number of periods after the epoch, by the clock of the asking host, at
// the request. Each host's cron starts a line by that same clock, so hosts whose clocks differ
// mean the same tick by the same line of a crontab, if not at the same time. The host that runs
// it claims it.
type Tick struct {
	Period time.Duration // 0: none is asked for
	Number int
}

// TickAt is the tick of a moment; no period, no tick.
func TickAt(at time.Time, period time.Duration) Tick {
	if period == 0 {
		return Tick{}
	}
	return Tick{Period: period, Number: int(at.UnixNano() / int64(period))}
}

// Asked reports whether there is a tick at all.
func (t Tick) Asked() bool { return t.Period > 0 }

// Began is when the tick began, by the clock of the host that asked.
func (t Tick) Began() time.Time { return time.Unix(0, int64(t.Number)*int64(t.Period)) }

// tickLife is for how many periods a tick is remembered: the clocks of hosts may differ by
// less than that.
const tickLife = 10

// Life is how long it has to be remembered that a tick was claimed.
func (t Tick) Life() time.Duration { return tickLife * t.Period }

// Outlived reports whether the tick of that number need not be remembered in this one.
func (t Tick) Outlived(number int) bool { return number <= t.Number-tickLife }

// used says why the tick denies the atom.
func (t Tick) used() string { return "too soon: ran already " + t.in() }

func (t Tick) in() string {
	return "in this tick of " + limit.Format(t.Period) + ", which began at " + t.Began().Format(time.DateTime)
}

// TickUsed reports whether what denies the newcomer is its tick. To wait is no use then:
// the tick stays the one that it was asked in.
func (d Decision) TickUsed() bool { return d.Step == TooSoon && d.used }
