package policy

import (
	"strings"
	"testing"
	"time"

	"adlock/test/support/must"
	"adlock/test/support/need"
)

var halfPast = time.Date(2026, 11, 22, 12, 30, 0, 0, time.UTC)

func TestATickOfMinutesOrHoursBeginsAtAMultipleOfItsPeriod(t *testing.T) {
	tick := TickAt(halfPast, time.Minute)
	for _, same := range []time.Duration{0, time.Second, time.Minute - 1} {
		if got := TickAt(halfPast.Add(same), time.Minute); got != tick {
			t.Errorf("%v later it is %v, not %v", same, got, tick)
		}
	}
	for _, other := range []time.Duration{-1, time.Minute} {
		if got := TickAt(halfPast.Add(other), time.Minute); got == tick {
			t.Errorf("%v later it is still %v", other, got)
		}
	}
	if !tick.Began().Equal(halfPast) || !TickAt(halfPast.Add(time.Hour/4), time.Hour).Began().Equal(halfPast.Add(-time.Hour/2)) {
		t.Error(tick.Began())
	}
	if TickAt(halfPast, 0).Asked() || !tick.Asked() {
		t.Error("no period, no tick")
	}
}

func TestAUsedTickDeniesANewcomerWhateverTheLocksState(t *testing.T) {
	terms := Terms{Tick: TickAt(halfPast, time.Hour)}
	for name, s := range map[string]Situation{
		"free":    {},
		"busy":    {Active: Active{Held: true, Owner: Lives}},
		"expired": {Active: Active{Held: true, Owner: Lives, Age: time.Hour}},
		"dead":    {Active: Active{Held: true, Owner: Gone}},
		"empty":   {Active: Active{Held: true, Empty: true, Age: time.Hour}},
	} {
		s.TickUsed = true
		d := Decide(terms, s)
		if d.Step != TooSoon || !d.TickUsed() || !strings.HasPrefix(d.Reason(), "too soon: ran already in this tick of 1h, which began at 2026-11-22 ") {
			t.Errorf("%s: %v, %q", name, d.Step, d.Reason())
		}
		if d := Decide(Terms{}, s); d.TickUsed() {
			t.Errorf("%s: a tick that was not asked for denies", name)
		}
	}
}

func TestAnUnusedTickDoesNotChangeTheDecision(t *testing.T) {
	terms := Terms{Tick: TickAt(halfPast, time.Hour), Limits: Limits{IfElapsed: time.Minute, ExpireAfter: time.Hour, Source: Said}}
	d := Decide(terms, Situation{})
	if d.Step != Acquire || !strings.HasPrefix(d.Reason(), "free: never completed, IfElapsed is 1m, ExpireAfter is 1h; not run yet in this tick of 1h, which began at ") {
		t.Errorf("%v, %q", d.Step, d.Reason())
	}
	d = Decide(terms, Situation{Last: Last{Completed: true}})
	if d.Step != TooSoon || d.TickUsed() || !strings.HasPrefix(d.Reason(), "too soon: completed ") {
		t.Errorf("%v, %q", d.Step, d.Reason())
	}
	d = Decide(terms, Situation{Active: Active{Held: true, Owner: Lives}})
	if d.Step != Busy || strings.Contains(d.Reason(), "tick") {
		t.Errorf("%v, %q", d.Step, d.Reason())
	}
}

func TestATickIsRememberedForTenPeriods(t *testing.T) {
	for _, period := range []time.Duration{time.Minute, 24 * time.Hour} {
		tick := TickAt(halfPast, period)
		if tick.Life() != 10*period || tick.Outlived(period, tick.Number-9) || !tick.Outlived(period, tick.Number-10) || tick.Outlived(period, tick.Number+1) || !tick.Next().Equal(tick.Began().Add(period)) {
			t.Errorf("%v", tick)
		}
	}
}

// An atom may be asked for once a day and once an hour: each tick is remembered for ten periods of its own.
func TestATicksLifeDoesNotDependOnTheNewcomersPeriod(t *testing.T) {
	honolulu, kiritimati := zone(t, "Pacific/Honolulu"), zone(t, "Pacific/Kiritimati") // 10 h behind UTC, 14 h ahead
	for _, where := range []*time.Location{time.UTC, honolulu, kiritimati} {
		now := halfPast.In(where)
		for _, other := range []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour, 7 * 24 * time.Hour} {
			for _, period := range []time.Duration{time.Second, time.Hour, 24 * time.Hour} {
				claimed := TickAt(now, other)
				if TickAt(now, period).Outlived(other, claimed.Number) {
					t.Errorf("%v: a tick of %v is outlived by one of %v at once", where, other, period)
				}
				if !TickAt(now.Add(claimed.Life()+2*24*time.Hour), period).Outlived(other, claimed.Number) {
					t.Errorf("%v: a tick of %v is never outlived by one of %v", where, other, period)
				}
			}
		}
	}
}

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	where, err := time.LoadLocation(name)
	if err != nil {
		need.Skip(t, err)
	}
	return where
}

func TestATickOfWholeDaysFollowsTheLocalCalendar(t *testing.T) {
	for _, c := range []struct {
		zone, from, to string
		period, days   int // ticks of so many days; how many ticks later
	}{
		{"Europe/Berlin", "2027-03-28 01:30", "2027-03-29 01:30", 1, 1}, // 23 hours
		{"Europe/Berlin", "2027-03-28 00:00", "2027-03-28 23:59", 1, 0},
		{"Europe/Berlin", "2027-10-31 00:00", "2027-10-31 23:59", 1, 0},    // 25 hours
		{"America/New_York", "2027-03-13 23:30", "2027-03-14 23:30", 1, 1}, // another day of UTC
		{"America/Santiago", "2027-09-04 23:30", "2027-09-05 01:30", 1, 1}, // there is no midnight
		{"Asia/Beirut", "2027-03-27 23:30", "2027-03-28 01:30", 1, 1},      // nor here, in the east
		{"UTC", "2027-03-22 00:00", "2027-03-28 23:59", 7, 0},              // a Monday
		{"Europe/Berlin", "2027-03-22 00:00", "2027-04-05 00:00", 7, 2},
		{"UTC", "2027-03-22 12:00", "2027-03-26 12:00", 2, 2},
	} {
		where, period := zone(t, c.zone), time.Duration(c.period)*24*time.Hour
		from, to := local(t, c.from, where), local(t, c.to, where)
		first, second := TickAt(from, period), TickAt(to, period)
		if got := second.Number - first.Number; got != c.days {
			t.Errorf("%s: %s and %s are %d ticks of %v apart", c.zone, c.from, c.to, got, period)
		}
		if began := second.Began(); began.After(to) || TickAt(began, period) != second || TickAt(began.Add(time.Hour), period) != second || TickAt(began.Add(-time.Second), period) == second {
			t.Errorf("%s: the tick of %s began at %v", c.zone, c.to, began)
		}
	}
}

func local(t *testing.T, text string, where *time.Location) time.Time {
	t.Helper()
	return must.Get(time.ParseInLocation("2006-01-02 15:04", text, where))(t)
}

// The day on which summer time begins has 23 hours.
func TestFromStartMakesADailyAtomDueAfterADayOf23Hours(t *testing.T) {
	where := zone(t, "Europe/Berlin")
	from, to := local(t, "2027-03-27 03:30", where), local(t, "2027-03-28 03:30", where)
	for ifElapsed, due := range map[time.Duration]bool{24 * time.Hour: true, 24*time.Hour + time.Second: false, 7 * 24 * time.Hour: false} {
		last := Last{Completed: true, FromStart: true, Age: to.Sub(from)}
		if got := Due(Limits{IfElapsed: ifElapsed}, last); got != due {
			t.Errorf("%v: due %v after %v", ifElapsed, got, last.Age)
		}
	}
}

// A slot and a reader's lock ask for no tick, because they are no runs of their own.
func TestSlotsAndReadersUseNoTick(t *testing.T) {
	terms := Terms{Tick: TickAt(halfPast, time.Hour)}
	if terms.ForSlot().Tick.Asked() || terms.ForReader().Tick.Asked() {
		t.Error("asked for by more")
	}
}
