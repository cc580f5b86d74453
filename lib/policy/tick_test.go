package policy

import (
	"strings"
	"testing"
	"time"
)

var halfPast = time.Date(2026, 11, 22, 12, 30, 0, 0, time.UTC)

func TestATickIsAWholeNumberOfPeriodsAfterTheEpoch(t *testing.T) {
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

func TestAUsedTickDeniesWhateverElseIsFound(t *testing.T) {
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

func TestATickThatIsFreeDeniesNothingAndGrantsNothing(t *testing.T) {
	terms := Terms{Tick: TickAt(halfPast, time.Hour), Limits: Limits{IfElapsed: time.Minute, ExpireAfter: time.Hour, Source: Said}}
	d := Decide(terms, Situation{})
	if d.Step != Acquire || !strings.Contains(d.Reason(), "; not run yet in this tick of 1h, which began at ") {
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
	tick := TickAt(halfPast, time.Minute)
	if tick.Life() != 10*time.Minute || tick.Outlived(tick.Number-9) || !tick.Outlived(tick.Number-10) || tick.Outlived(tick.Number+1) {
		t.Errorf("%v", tick)
	}
}

// A slot and a reader's lock ask for no tick, because they are no runs of their own.
func TestATickIsAskedForByTheAtomAlone(t *testing.T) {
	terms := Terms{Tick: TickAt(halfPast, time.Hour)}
	if terms.ForSlot().Tick.Asked() || terms.ForReader().Tick.Asked() {
		t.Error("asked for by more")
	}
}
