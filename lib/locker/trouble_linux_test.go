package locker

import (
	"testing"
	"time"

	"adlock/lib/fault"
	"adlock/lib/runlog"
	"adlock/test/support/helper"
	"adlock/test/support/must"
)

// A store that is away for hours is reported at doublings, whichever job is to run. An event that
// was reported has an age.
func TestAStoreThatIsAwayIsReportedAtDoublings(t *testing.T) {
	rec, now := recording(t), time.Now()
	rec.Log.Store = "etcd://a:2379/prod"
	ago := func(minutes int, e runlog.Event) {
		t.Helper()
		e.Time, e.Program, e.Store = now.Add(-time.Duration(minutes)*time.Minute), "p", rec.Log.Store
		must.Do(t, rec.Log.Append(e))
	}
	away := func(age ...time.Duration) runlog.Event {
		e := runlog.Event{Kind: runlog.NotRun, Status: runlog.Some(69)}
		if len(age) > 0 {
			e.Age = runlog.Some(age[0])
		}
		return e
	}
	asks := func(why string, kind fault.Kind, want time.Duration, told bool) {
		t.Helper()
		helper.Stderr(t, func() {
			r := NewRequest()
			r.Atom = backup
			if err := rec.NotRun(&r, "", Outcome{}, fault.New(kind, rec.Log.Store, "connection refused")); fault.KindOf(err) != kind {
				t.Errorf("%s: %v", why, err)
			}
		})
		for e := range rec.Log.Newest(1 << 20) {
			if e.Kind != runlog.NotRun || e.Operand != "backup" {
				t.Fatalf("%s: the newest event is %+v", why, e)
			}
			if e.Age.Set != told || e.Age.Value.Round(time.Minute) != want {
				t.Errorf("%s: reported: %v, after %v", why, e.Age.Set, e.Age.Value)
			}
			break
		}
	}
	ago(200, runlog.Event{Kind: runlog.Release})
	asks("the first", fault.Unavailable, 0, true)
	asks("the next start", fault.Unavailable, 0, false)
	asks("another reason", fault.NotPermitted, 0, true)

	ago(190, runlog.Event{Kind: runlog.Acquire})
	ago(100, away(0))
	ago(50, away())
	asks("after an hour", fault.Unavailable, 100*time.Minute, true)
	ago(45, away(100*time.Minute))
	asks("before the doubling", fault.Unavailable, 0, false)
	ago(110, away(100*time.Minute))
	asks("after the doubling", fault.Unavailable, 210*time.Minute, true)

	ago(0, runlog.Event{Kind: runlog.Deny, Verdict: string(Paused)}) // the store was not asked
	asks("during a pause", fault.Unavailable, 0, false)
	ago(0, runlog.Event{Kind: runlog.Deny, Verdict: string(Busy)})
	asks("after it answered", fault.Unavailable, 0, true)
}

func TestOneOfTheJobsOfAMinuteReportsItsStore(t *testing.T) {
	rec := recording(t)
	rec.Log.Store = "etcd://a:2379/prod"
	var all []runlog.Event
	for pid := 7; pid < 10; pid++ {
		e := runlog.Event{Kind: runlog.NotRun, Program: "p", PID: pid, Store: rec.Log.Store, Status: runlog.Some(69), Age: runlog.Some[time.Duration](0)}
		must.Do(t, rec.Log.Append(e))
		all = append(all, e)
	}
	for i, e := range all {
		if others := rec.othersTold(e); others != (i > 0) {
			t.Errorf("job %d leaves it to another: %v", i, others)
		}
	}
}

func TestTroubleWithADirectoryIsReportedEachTime(t *testing.T) {
	rec, e := recording(t), runlog.Event{Kind: runlog.NotRun, Status: runlog.Some(74)}
	if age, due := rec.awayFor(e); age.Set || !due || rec.othersTold(e) {
		t.Errorf("%v, %v", age, due)
	}
}
