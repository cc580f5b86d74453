package policy

import (
	"testing"
	"time"

	"adlock/lib/limit"
)

func TestEachDecisionIsExplainedWithItsTimesAndLimits(t *testing.T) {
	limits := Limits{IfElapsed: 15 * minute, ExpireAfter: 2 * time.Hour, Source: Said}
	young := Active{Held: true, Age: minute}
	enforced := Active{Held: true, Age: minute, Asked: 90 * minute, Source: Said, Patience: 12 * time.Second}
	for _, c := range []struct {
		step   Step
		limits Limits
		last   Last
		active Active
		want   string
	}{
		{TooSoon, limits, ago(-1), Active{}, "too soon: completed since the pass began, IfElapsed is 15m; due in 15m"},
		{TooSoon, limits, ago(0), Active{}, "too soon: completed 0s ago, IfElapsed is 15m; due in 15m"},
		{TooSoon, Limits{IfElapsed: limit.Never}, ago(minute), Active{}, "too soon: completed 1m ago, IfElapsed is never"},
		{TooSoon, limits, Last{Completed: true, FromStart: true, Age: minute}, Active{}, "too soon: started 1m ago, IfElapsed is 15m less 30s; due in 13m30s"},
		{Acquire, limits, Last{Completed: true, FromStart: true, Age: 20 * minute}, Active{}, "free: started 20m ago, IfElapsed is 15m less 30s, ExpireAfter is 2h"},
		{Acquire, Limits{}, Last{Completed: true, FromStart: true, Age: minute}, Active{}, "free: started 1m ago, IfElapsed is 0s, no ExpireAfter"},
		{Acquire, limits, Last{}, Active{}, "free: never completed, IfElapsed is 15m, ExpireAfter is 2h"},
		{Acquire, limits, ago(20 * minute), Active{}, "free: completed 20m ago, IfElapsed is 15m, ExpireAfter is 2h"},
		{Acquire, limits, Last{Completed: true, Age: -time.Hour, Future: true}, Active{}, "free: the last lock lies in the future, IfElapsed is 15m, ExpireAfter is 2h"},
		{Busy, limits, Last{}, young, "busy: running for 1m, ExpireAfter is 2h"},
		{Busy, Limits{}, Last{}, young, "busy: running for 1m, no ExpireAfter"},
		{Busy, Limits{}, Last{}, Active{Held: true, Age: minute, Remote: true, Node: "dax"}, "busy: running for 1m on dax, no ExpireAfter"},
		{Busy, Limits{ExpireAfter: 15 * minute, Source: Filed}, Last{}, young, "busy: running for 1m, ExpireAfter is 15m (settings file)"},
		{Busy, Limits{ExpireAfter: 15 * minute, Source: Learned}, Last{}, young, "busy: running for 1m, the learned ExpireAfter is 15m"},
		{Busy, Limits{ExpireAfter: minute, Source: Learned}, Last{}, Active{Held: true, Age: minute, Remote: true, Work: "12 kB"}, "busy: running for 1m, the learned ExpireAfter is 1m, and it works (12 kB)"},
		{Busy, Limits{ExpireAfter: minute, Source: Learned}, Last{}, Active{Held: true, Age: minute, Remote: true}, "busy: running for 1m, the learned ExpireAfter is 1m, and it is not known to be idle"},
		{Busy, Limits{ExpireAfter: limit.Never, Source: Learned}, Last{}, young, "busy: running for 1m, no ExpireAfter learned yet"},
		{Busy, Limits{}, Last{}, held(minute, Lives), "busy: running for 1m, ExpireAfter is 1h30m (its owner's)"},
		{Busy, Limits{}, Last{}, enforced, "busy: running for 1m, ExpireAfter is 1h30m (its owner's, which enforces it)"},
		{Busy, Limits{ExpireAfter: 90 * minute, Source: Said}, Last{}, enforced, "busy: running for 1m, ExpireAfter is 1h30m (its owner enforces it)"},
		{Busy, limits, Last{}, enforced, "busy: running for 1m, ExpireAfter is 2h"},
		{Busy, limits, Last{}, Active{Held: true, Empty: true}, "busy: the lock is empty, perhaps being written"},
		{Busy, limits, Last{}, Active{Held: true, Owner: Ancestor}, "busy: the atom is running this very program"},
		{Busy, limits, Last{}, Active{Held: true, Owner: Untouched}, "busy: the lock has only a pid, which lives"},
		{Expire, limits, Last{}, held(3*time.Hour, Lives), "expired: running for 3h, ExpireAfter is 2h; it would be ended"},
		{Acquire, Limits{Source: Said}, Last{}, Active{}, "free: never completed, IfElapsed is 0s, no ExpireAfter"}, // as with --replace
		{Acquire, Limits{ExpireAfter: limit.Never, Source: Learned}, Last{}, Active{}, "free: never completed, IfElapsed is 0s, no ExpireAfter learned yet"},
		{Busy, Limits{ExpireAfter: 15 * minute, Source: Learned}, Last{}, held(minute, Lives), "busy: running for 1m, ExpireAfter is 1h30m (its owner's)"},
		{Busy, Limits{ExpireAfter: 90 * minute, Source: Learned}, Last{}, held(minute, Lives), "busy: running for 1m, ExpireAfter is 1h30m (its owner's)"},
		{Busy, Limits{ExpireAfter: 90 * minute, Source: Said}, Last{}, held(minute, Lives), "busy: running for 1m, ExpireAfter is 1h30m"},
		{Reclaim, limits, Last{}, held(minute, Gone), "free: the owner is dead; its lock would be replaced"},
		{Unempty, limits, Last{}, Active{Held: true, Empty: true, Age: 2 * minute}, "free: the lock is empty and 2m old; it would be cleared"},
		{Stuck, limits, Last{}, held(3*time.Hour, Unknown), "stuck: running for 3h, ExpireAfter is 2h, and its owner cannot be checked from here"},
	} {
		if got := reason(c.step, c.limits, c.last, c.active); got != c.want {
			t.Errorf("reason is %q, want %q", got, c.want)
		}
	}
}

func TestADenialForFullSlotsNamesTheirNumber(t *testing.T) {
	for semaphore, texts := range map[string][]string{
		"":  {"full: an atom of p is running", "full: 2 atoms of p are running"},
		"s": {"full: at most 1 run of s at once", "full: at most 2 runs of s at once"},
	} {
		for i, want := range texts {
			d := Decide(Terms{Slots: i + 1, Program: "p", Semaphore: semaphore}, Situation{Slots: []Active{held(minute, Lives), held(minute, Lives)}[:i+1]})
			if d.Step != Full || d.Reason() != want {
				t.Errorf("step %d: %q, want %q", d.Step, d.Reason(), want)
			}
		}
	}
}

func TestALaterStartDeniesOnlyANewcomerThatReplaces(t *testing.T) {
	replace, hourly := Limits{Source: Said}, Limits{ExpireAfter: time.Hour, Source: Said}
	later := held(2*time.Hour, Lives)
	later.Newer = true
	for _, c := range []struct {
		limits Limits
		last   Last
		active Active
		denied bool
		want   string
	}{
		{replace, Last{Newer: true}, Active{}, true, "busy: a start that was asked for later has run"},
		{replace, Last{}, later, true, "busy: running for 2h, ExpireAfter is 0s, and it was asked for later than this start"},
		{replace, Last{}, held(2*time.Hour, Lives), false, "expired: running for 2h, ExpireAfter is 0s; it would be ended"},
		{replace, Last{}, Active{Held: true, Empty: true, Newer: true}, false, "busy: the lock is empty, perhaps being written"},
		{hourly, Last{Newer: true}, Active{}, false, "free: never completed, IfElapsed is 0s, ExpireAfter is 1h"},
		{hourly, Last{Newer: true}, later, false, "expired: running for 2h, ExpireAfter is 1h; it would be ended"},
		{Limits{}, Last{Newer: true}, held(minute, Lives), false, "busy: running for 1m, ExpireAfter is 1h30m (its owner's)"},
	} {
		d := Decide(Terms{Limits: c.limits}, Situation{Last: c.last, Active: c.active})
		if d.Outdated() != c.denied || d.Reason() != c.want || d.Because(Busy, "it is so").Reason() != "busy: it is so" {
			t.Errorf("denied %v, %q, want %v, %q", d.Outdated(), d.Reason(), c.denied, c.want)
		}
	}
}

func TestTheReasonOfAStuckDecisionNamesItsCause(t *testing.T) {
	d := Decide(Terms{Limits: Limits{ExpireAfter: 2 * time.Hour, Source: Said}}, Situation{Active: held(3*time.Hour, Lives)}).Because(Stuck, "process 7 may not be signalled")
	const want = "stuck: running for 3h, ExpireAfter is 2h, and process 7 may not be signalled"
	if d.Step != Stuck || d.Step.Granted() || d.Reason() != want {
		t.Errorf("step %d: %q", d.Step, d.Reason())
	}
}

func TestPatienceAddedToALimitDoesNotOverflow(t *testing.T) {
	for _, limits := range []Limits{{ExpireAfter: limit.Never, Source: Said}, {ExpireAfter: limit.Never - minute, Source: Said}, {ExpireAfter: limit.Never - 1, Source: Said}} {
		if got := Expiry(limits, Active{Patience: minute}); got != limit.Never {
			t.Errorf("ExpireAfter %v with patience expires at %v", limits.ExpireAfter, got)
		}
	}
}
