package policy

import (
	"testing"
	"time"

	"adlock/lib/limit"
)

func TestReadersAreCheckedAfterTheActiveLock(t *testing.T) {
	old, young, dead := held(2*time.Hour, Lives), held(minute, Lives), held(minute, Gone)
	free, entering := Active{}, Active{Held: true, Age: time.Second, Entering: true}
	for _, c := range []struct {
		claim   string
		terms   Terms
		active  Active
		readers []Active
		want    Step
		reader  int
	}{
		{"no reader", Terms{}, free, nil, Acquire, -1},
		{"a reader denies a writer", Terms{}, free, []Active{young}, Busy, 0},
		{"a reader does not deny a reader", Terms{Shared: true}, free, []Active{young}, Acquire, -1},
		{"the first that denies decides", Terms{}, free, []Active{dead, young, held(2*minute, Lives)}, Busy, 1},
		{"it decides before one that makes way", Terms{}, free, []Active{young, dead}, Busy, 0},
		{"else the first that has to make way", Terms{}, free, []Active{old, dead}, Expire, 0},
		{"a place without a lock is passed over", Terms{}, free, []Active{free, dead}, Reclaim, 1},
		{"an owner makes way before readers do", Terms{}, old, []Active{dead}, Expire, -1},
		{"and readers that do not deny", Terms{}, old, []Active{dead, young}, Busy, 1},
		{"readers are not looked at behind an owner that denies", Terms{}, young, []Active{dead}, Busy, -1},
		{"a reader on its way denies a writer", Terms{}, entering, nil, Busy, -1},
		{"and no reader", Terms{Shared: true}, entering, nil, Acquire, -1},
		{"but a reader that owns does", Terms{Shared: true}, young, nil, Busy, -1},
		{"a dead one on its way is replaced", Terms{Shared: true}, Active{Held: true, Entering: true, Owner: Gone}, nil, Reclaim, -1},
	} {
		d := Decide(c.terms, Situation{Active: c.active, Readers: c.readers})
		if d.Step != c.want || d.Reader != c.reader {
			t.Errorf("%s: step %d by reader %d, want %d by %d", c.claim, d.Step, d.Reader, c.want, c.reader)
		}
		if want := c.active; c.reader >= 0 && d.Active != c.readers[c.reader] || c.reader < 0 && c.want != Acquire && d.Active != want {
			t.Errorf("%s: decided by %+v", c.claim, d.Active)
		}
	}
}

func TestANewcomerIsDeniedWhenAllSlotsAreTaken(t *testing.T) {
	taken, old, dead, free := held(minute, Lives), held(1000*time.Hour, Lives), held(minute, Gone), Active{}
	for _, c := range []struct {
		claim  string
		active Active
		limit  int
		slots  []Active
		want   Step
	}{
		{"no limit", free, 0, []Active{taken}, Acquire},
		{"all taken", free, 2, []Active{taken, taken}, Full},
		{"by owners of any age", free, 2, []Active{old, taken}, Full},
		{"one is free", free, 2, []Active{taken, free}, Acquire},
		{"one is a dead owner's", free, 2, []Active{dead, taken}, Acquire},
		{"an owner that denies is said first", taken, 1, []Active{taken}, Busy},
		{"a dead owner frees no slot of others", dead, 1, []Active{taken}, Full},
	} {
		if d := Decide(Terms{Slots: c.limit}, Situation{Active: c.active, Slots: c.slots}); d.Step != c.want {
			t.Errorf("%s: step %d, want %d", c.claim, d.Step, c.want)
		}
	}
}

func TestOnlyAcquireExpireReclaimAndUnemptyGrantTheAtom(t *testing.T) {
	for step, want := range map[Step]bool{TooSoon: false, Busy: false, Acquire: true, Expire: true, Reclaim: true, Unempty: true, Stuck: false, Full: false, Paused: false} {
		if step.Granted() != want {
			t.Errorf("step %d is granted: %v", step, !want)
		}
	}
}

func TestAnExplicitLimitWinsAndALearnedOneOnlyLengthens(t *testing.T) {
	for _, c := range []struct {
		claim  string
		limits Limits
		active Active
		want   time.Duration
		source Source
	}{
		{"neither side says one", Limits{}, Active{}, limit.Never, None},
		{"the newcomer says one", Limits{ExpireAfter: minute, Source: Said}, Active{Asked: time.Hour, Source: Said}, minute, Said},
		{"the owner said one", Limits{}, Active{Asked: time.Hour, Source: Said}, time.Hour, Said},
		{"a learned one lengthens the owner's", Limits{ExpireAfter: 2 * time.Hour, Source: Learned}, Active{Asked: time.Hour, Source: Said}, 2 * time.Hour, Learned},
		{"the same is the owner's", Limits{ExpireAfter: time.Hour, Source: Learned}, Active{Asked: time.Hour, Source: Said}, time.Hour, Said},
		{"a learned one counts alone", Limits{ExpireAfter: minute, Source: Learned}, Active{}, minute, Learned},
		{"also as never", Limits{ExpireAfter: limit.Never, Source: Learned}, Active{}, limit.Never, Learned},
		{"a file's limit counts alone", Limits{ExpireAfter: minute, Source: Filed}, Active{}, minute, Filed},
		{"the newcomer's file wins", Limits{ExpireAfter: minute, Source: Filed}, Active{Asked: time.Hour, Source: Filed}, minute, Filed},
		{"the owner's file counts", Limits{}, Active{Asked: time.Hour, Source: Filed}, time.Hour, Filed},
		{"and no longer beside a said one", Limits{ExpireAfter: minute, Source: Said}, Active{Asked: time.Hour, Source: Filed}, minute, Said},
		{"nor beside a learned one", Limits{ExpireAfter: minute, Source: Learned}, Active{Asked: time.Hour, Source: Filed}, minute, Learned},
		{"nor the newcomer's", Limits{ExpireAfter: 2 * time.Hour, Source: Filed}, Active{Asked: time.Hour, Source: Said}, time.Hour, Said},
		{"nor that beside a learned one", Limits{ExpireAfter: 2 * time.Hour, Source: Filed}, Active{Asked: time.Hour, Source: Learned}, time.Hour, Learned},
		{"never does not lengthen", Limits{ExpireAfter: limit.Never, Source: Learned}, Active{Asked: time.Hour, Source: Said}, time.Hour, Said},
	} {
		if got, source := InForce(c.limits, c.active); got != c.want || source != c.source {
			t.Errorf("%s: %v from %q, want %v from %q", c.claim, got, source, c.want, c.source)
		}
	}
}

func TestAPauseDeniesEveryNewcomerFromOutsideAJob(t *testing.T) {
	paused := Pause{On: true, Left: time.Hour, Why: "disk"}
	for claim, s := range map[string]Situation{
		"free": {}, "busy": {Active: Active{Held: true}}, "dead": {Active: Active{Held: true, Owner: Gone}},
		"too soon": {Last: Last{Completed: true}}, "its tick is used": {TickUsed: true},
	} {
		terms := Terms{Limits: Limits{IfElapsed: time.Hour}}
		without := Decide(terms, s)
		s.Pause = paused
		if d := Decide(terms, s); d.Step != Paused || d.Step.Granted() || d.Reason() != "paused: for 1h more (disk)" {
			t.Errorf("%s: %v, %q", claim, d.Step, d.Reason())
		}
		s.Pause.Inside = true
		if d := Decide(terms, s); d.Step != without.Step {
			t.Errorf("%s, from inside a job: %v, want %v", claim, d.Step, without.Step)
		}
	}
	if d := Decide(Terms{}, Situation{Pause: Pause{On: true, Left: limit.Never}}); d.Reason() != "paused: until it is resumed" {
		t.Errorf("%q", d.Reason())
	}
}
