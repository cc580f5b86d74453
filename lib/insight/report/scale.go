package report

import (
	"time"

	"adlock/lib/limit"
)

type mark struct {
	at    time.Time
	label string
}

var steps = [...]time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	day, 2 * day, 7 * day, 14 * day, 28 * day, 91 * day, 364 * day,
}

const day = 24 * time.Hour

// scale returns marks at full units of local time, no more than most.
func (c *Chart) scale(most int) []mark {
	period := c.to.Sub(c.from)
	step := steps[len(steps)-1]
	for _, s := range steps {
		if period/s < time.Duration(max(1, most)) {
			step = s
			break
		}
	}
	from := c.from.Local()
	_, offset := from.Zone()
	wall := from.UTC().Add(time.Duration(offset) * time.Second) // local time, as if each day had 24 hours
	unit := min(step, day)
	var marks []mark
	last := from.Add(-1)
	for wall = wall.Add(unit - 1).Truncate(unit); len(marks) < most; wall = wall.Add(step) {
		at := limit.Local(wall, from.Location())
		if at.After(c.to) {
			break
		}
		if at.After(last) { // summer time leaves out an hour, which must not be marked twice
			shown := at
			if step >= day { // summer time may begin at midnight
				shown = wall
			}
			marks = append(marks, mark{at, label(shown, step)})
			last = at
		}
	}
	return marks
}

func label(at time.Time, step time.Duration) string {
	switch {
	case step >= day, step >= time.Minute && at.Hour() == 0 && at.Minute() == 0:
		return at.Format("Jan 2")
	case step >= time.Minute:
		return at.Format("15:04")
	}
	return at.Format("15:04:05")
}
