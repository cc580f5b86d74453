package locker

import (
	"testing"
	"time"

	"adlock/lib/atom"
	"adlock/lib/policy"
	"adlock/lib/runlog"
	"adlock/test/support/must"
)

func TestThePaceIsThatOfTheAtomsLatestRequests(t *testing.T) {
	a := atom.Atom{Program: "p", Host: "h", Operator: "run", Operand: "x"}
	other := a
	other.Operand = "y"
	rec := Recorder{Log: &runlog.Log{Dir: t.TempDir(), Host: "h"}}
	if got := rec.Pace(a); got != (policy.Pace{}) {
		t.Errorf("of nothing: %+v", got)
	}
	at := time.Now().Add(-24 * time.Hour)
	append := func(kind runlog.Kind, a atom.Atom, e runlog.Event) {
		t.Helper()
		whole := event(kind, a, 1)
		whole.Time, whole.Wait, whole.Duration = at, e.Wait, e.Duration
		must.Do(t, rec.Log.Append(whole))
	}
	for range 20 { // long ago it was asked for every hour
		append(runlog.Acquire, a, runlog.Event{})
		at = at.Add(time.Hour)
	}
	for range 6 {
		append(runlog.Acquire, a, runlog.Event{})
		at = at.Add(3 * time.Second)
		append(runlog.Acquire, other, runlog.Event{})
		append(runlog.Release, a, runlog.Event{Duration: runlog.Some(3 * time.Second)})
		at = at.Add(47 * time.Second)
		append(runlog.Release, other, runlog.Event{Duration: runlog.Some(time.Hour)})
		at = at.Add(20 * time.Second)
		append(runlog.Deny, a, runlog.Event{Wait: 10 * time.Second})
		at = at.Add(50 * time.Second)
	}
	if got := rec.Pace(a); got != (policy.Pace{Period: time.Minute, Runtime: 3 * time.Second}) {
		t.Errorf("%+v", got)
	}
	if got := (Recorder{}).Pace(a); got != (policy.Pace{}) {
		t.Errorf("without a runlog: %+v", got)
	}
}
