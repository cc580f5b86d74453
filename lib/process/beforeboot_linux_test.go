package process

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/test/support/actor"
)

func TestATimeThatTheClockShowedInThisBootIsNotBeforeIt(t *testing.T) {
	const up, day = 10 * time.Hour, 24 * time.Hour
	began := time.Date(2026, 11, 27, 6, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		then time.Time // the boot by the clock as it was then
		at   time.Time
		want bool
	}{
		"an hour earlier":                  {began, began.Add(-time.Hour), true},
		"days earlier":                     {began, began.Add(-3 * day), true},
		"just before":                      {began, began.Add(-time.Second), false},
		"at the boot":                      {began, began, false},
		"since":                            {began, began.Add(time.Hour), false},
		"in the future":                    {began, began.Add(day), false},
		"no clock at the boot, since":      {time.Unix(5, 0), time.Unix(60, 0), false},
		"no clock at the boot, earlier":    {time.Unix(5, 0), began.Add(-time.Hour), true},
		"a snapshot resumed, before it":    {began.Add(-8 * day), began.Add(-8*day + time.Hour), false},
		"a snapshot resumed, just before":  {began.Add(-8 * day), began.Add(-8*day - time.Second), false},
		"a snapshot resumed, just after":   {began.Add(-8 * day), began.Add(-8*day + up + time.Second), false},
		"no clock at the boot, just then":  {time.Unix(5, 0), began.Add(-time.Second), false},
		"a snapshot resumed, since":        {began.Add(-8 * day), began.Add(time.Hour), false},
		"a snapshot resumed, earlier":      {began.Add(-8 * day), began.Add(-9 * day), true},
		"a clock ahead, set back":          {began.Add(day), began.Add(-time.Hour), true},
		"a container, started later":       {began.Add(5 * time.Hour), began.Add(-time.Hour), true},
		"a container, in a clock set back": {began.Add(-2 * day), began.Add(-2*day + time.Hour), false},
	} {
		if got := before(c.at, up, began, c.then); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestBeforeBootIsFalseForThisBootOrInATimeNamespace(t *testing.T) {
	now := time.Now()
	for _, age := range []time.Duration{-time.Hour, 0, time.Second, Boottime() - time.Second} {
		if BeforeBoot(now.Add(-age)) {
			t.Errorf("%v ago", age)
		}
	}
	for where, want := range map[Identity]bool{{TimeNS: initialTimeNS}: true, {}: true, {TimeNS: 1}: false, {PID: -1}: false} {
		actor.Set(t, &here, func() (Identity, error) { return where, map[int]error{-1: unix.EMFILE}[where.PID] })
		if long := time.Unix(-1e9, 0); BeforeBoot(long) != want {
			t.Errorf("seen from %+v, %v is certain: %v", where, long, !want)
		}
	}
}
