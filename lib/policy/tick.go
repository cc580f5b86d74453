package policy

import (
	"time"

	"adlock/lib/limit"
)

// Tick is a period in which an atom runs once, on one host of several (--once-per). Its number is
// the number of whole periods since the epoch at the time of the request, by the clock of the
// asking host. cron on that host starts jobs by the same clock, so if the clocks of two hosts
// differ, the same crontab line still asks for the same tick on both, at different moments. The
// host that runs the atom claims the tick.
type Tick struct {
	Period time.Duration // 0: no tick is asked for
	Number int
}

// TickAt is the tick at a moment; without a period it is the zero Tick.
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

// Life is how long a claim of the tick has to be remembered.
func (t Tick) Life() time.Duration { return tickLife * t.Period }

// Outlived reports whether a claim of the tick of that number need not be remembered any more at
// this tick.
func (t Tick) Outlived(number int) bool { return number <= t.Number-tickLife }

// used says why the tick denies the atom.
func (t Tick) used() string { return "too soon: ran already " + t.in() }

func (t Tick) in() string {
	return "in this tick of " + limit.Format(t.Period) + ", which began at " + t.Began().Format(time.DateTime)
}

// TickUsed reports whether the newcomer is denied because its tick was used. Waiting does not help
// then: the tick stays that of the request.
func (d Decision) TickUsed() bool { return d.Step == TooSoon && d.used }
