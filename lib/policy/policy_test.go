package policy

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"adlock/lib/limit"
)

const minute = time.Minute

func ago(d time.Duration) Last { return Last{Completed: true, Age: d} }

func held(age time.Duration, owner Owner) Active {
	return Active{Held: true, Age: age, Owner: owner, Asked: 90 * minute, Source: Said}
}

func TestDecideChoosesTheStepByAgeLimitAndOwnersState(t *testing.T) {
	hourly := Limits{IfElapsed: 15 * minute, ExpireAfter: 90 * minute, Source: Said}
	never := Last{}
	due := ago(15 * minute)
	for _, c := range []struct {
		claim  string
		limits Limits
		last   Last
		active Active
		want   Step
	}{
		{"completed within IfElapsed", hourly, ago(15*minute - 1), Active{}, TooSoon},
		{"too soon is said before busy", hourly, ago(minute), held(minute, Lives), TooSoon},
		{"too soon is said before a dead owner is looked at", hourly, ago(minute), held(minute, Gone), TooSoon},
		{"due at IfElapsed exactly", hourly, due, Active{}, Acquire},
		{"young owner", hourly, due, held(90*minute-1, Lives), Busy},
		{"expired at ExpireAfter exactly", hourly, due, held(90*minute, Lives), Expire},
		{"dead owner of any age", hourly, due, held(0, Gone), Reclaim},
		{"orphans hold the atom", hourly, due, held(minute, Orphaned), Busy},
		{"orphans expire", hourly, due, held(91*minute, Orphaned), Expire},
		{"unknown owner, young", hourly, due, held(minute, Unknown), Busy},
		{"unknown owner, expired", hourly, due, held(91*minute, Unknown), Stuck},
		{"an ancestor is never ended", hourly, due, held(900*minute, Ancestor), Busy},
		{"a pid alone is never signalled", hourly, due, held(900*minute, Untouched), Busy},
		{"empty and young", hourly, due, Active{Held: true, Empty: true, Age: minute - 1}, Busy},
		{"empty and old", hourly, due, Active{Held: true, Empty: true, Age: minute}, Unempty},
		{"empty and hardly in the future", hourly, due, Active{Held: true, Empty: true, Age: -time.Second}, Busy},
		{"empty and from the future", hourly, due, Active{Held: true, Empty: true, Age: -minute}, Unempty},
		{"a last lock in the future means nothing", hourly, Last{Completed: true, Age: -time.Hour, Future: true}, Active{}, Acquire},
		{"completed after the pass began", hourly, ago(-minute), Active{}, TooSoon},

		{"IfElapsed 0 is always due", Limits{ExpireAfter: minute}, ago(-minute), Active{}, Acquire},
		{"IfElapsed never: once", Limits{IfElapsed: limit.Never}, ago(1000 * time.Hour), Active{}, TooSoon},
		{"IfElapsed never: the first time", Limits{IfElapsed: limit.Never}, never, Active{}, Acquire},
		{"ExpireAfter 0 preempts at once", Limits{Source: Said}, never, held(0, Lives), Expire},
		{"and one that began after the pass did", Limits{Source: Said}, never, held(-minute, Lives), Expire},
		{"ExpireAfter never", Limits{ExpireAfter: limit.Never, Source: Said}, never, held(1e6*time.Hour, Lives), Busy},
		{"a limit that is not learned yet lengthens none", Limits{ExpireAfter: limit.Never, Source: Learned}, never, held(90*minute, Lives), Expire},
		{"in a store it ends none that is not known to be idle", Limits{ExpireAfter: minute, Source: Learned}, never, Active{Held: true, Age: minute, Remote: true}, Busy},
		{"it ends one that is", Limits{ExpireAfter: minute, Source: Learned}, never, Active{Held: true, Age: minute, Remote: true, Idle: minute}, Expire},
		{"and a said one any", Limits{ExpireAfter: minute, Source: Said}, never, Active{Held: true, Age: minute, Remote: true, Work: "12 kB"}, Expire},
		{"the owner's limit counts where the newcomer says none", Limits{}, never, held(90*minute, Lives), Expire},
		{"a job without a limit is not ended", Limits{}, never, Active{Held: true, Age: 1e6 * time.Hour}, Busy},
		{"a limit that is said shortens it", Limits{ExpireAfter: minute, Source: Said}, never, held(minute, Lives), Expire},
		{"an enforcing owner is left to itself", hourly, due, Active{Held: true, Age: 90 * minute, Patience: 12 * time.Second}, Busy},
		{"but not for ever", hourly, due, Active{Held: true, Age: 90*minute + 12*time.Second, Patience: 12 * time.Second}, Expire},
		{"never stays never with patience", Limits{ExpireAfter: limit.Never, Source: Said}, never, Active{Held: true, Age: time.Hour, Patience: minute}, Busy},
	} {
		if got := decide(c.limits, c.last, c.active); got != c.want {
			t.Errorf("%s: step %d, want %d", c.claim, got, c.want)
		}
	}
}

func TestExpireAfterBelowIfElapsedDrawsAWarning(t *testing.T) {
	const want = "ExpireAfter 1m is below IfElapsed 2m: a job that still runs at the next start will be ended then"
	if got := (Limits{IfElapsed: 2 * minute, ExpireAfter: minute, Source: Said}).Warning(); got != want {
		t.Errorf("warning %q, want %q", got, want)
	}
	for _, limits := range []Limits{{IfElapsed: minute, ExpireAfter: minute, Source: Said}, {IfElapsed: minute}, {IfElapsed: limit.Never, ExpireAfter: minute, Source: Said}} {
		if w := limits.Warning(); w != "" {
			t.Errorf("%+v: warning %q", limits, w)
		}
	}
}

func anySituation(t *rapid.T) (Limits, Last, Active) {
	d := rapid.OneOf(rapid.Just(time.Duration(0)), rapid.Just(limit.Never), rapid.Map(rapid.Int64Range(0, 1e6), func(s int64) time.Duration { return time.Duration(s) * time.Second }))
	limits := Limits{d.Draw(t, "if-elapsed"), d.Draw(t, "expire-after"), rapid.SampledFrom([]Source{None, Learned, Filed, Said}).Draw(t, "source")}
	if limits.Source == None {
		limits.ExpireAfter = limit.Never
	}
	last := Last{
		Completed: rapid.Bool().Draw(t, "completed"), FromStart: rapid.Bool().Draw(t, "from start"),
		Age: time.Duration(rapid.Int64Range(-1e6, 1e7).Draw(t, "last age")) * time.Second,
	}
	active := Active{
		Held: rapid.Bool().Draw(t, "held"), Empty: rapid.Bool().Draw(t, "empty"),
		Age: time.Duration(rapid.Int64Range(0, 1e7).Draw(t, "age")) * time.Second, Owner: Owner(rapid.IntRange(int(Lives), int(Untouched)).Draw(t, "owner")),
		Asked: d.Draw(t, "asked"), Source: rapid.SampledFrom([]Source{None, Learned, Filed, Said}).Draw(t, "owner's source"), Patience: time.Duration(rapid.Int64Range(0, 100).Draw(t, "patience")) * time.Second,
	}
	return limits, last, active
}

func TestAnOwnerBelowItsLimitIsReplacedOnlyIfDead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits, last, active := anySituation(t)
		active.Held, active.Empty = true, false
		step := decide(limits, last, active)
		if active.Owner != Gone && active.Age < Expiry(limits, active) && step != Busy && step != TooSoon {
			t.Fatalf("step %d", step)
		}
		if step == Reclaim && active.Owner != Gone {
			t.Fatalf("reclaimed from owner state %d", active.Owner)
		}
	})
}

func TestOnlyABusyDecisionChangesAsTheActiveLockAges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits, last, active := anySituation(t)
		older := active
		older.Age += time.Duration(rapid.Int64Range(0, 1e6).Draw(t, "later")) * time.Second
		if before := decide(limits, last, active); before != Busy && before != decide(limits, last, older) {
			t.Fatalf("step %d changed by waiting", before)
		}
	})
}

func TestNoOwnerIsEndedWithoutALimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits, last, active := anySituation(t)
		limits.Source, active.Source = None, None
		if step := decide(limits, last, active); step == Expire || step == Stuck {
			t.Fatalf("step %d", step)
		}
	})
}

func TestAnOwnerIsOverdueAfterTheNoticeIfNoLimitWillEndIt(t *testing.T) {
	learned, said := Notice{After: minute}, Notice{After: minute, Said: true}
	limited := Limits{ExpireAfter: time.Hour, Source: Said}
	for _, c := range []struct {
		claim  string
		limits Limits
		active Active
		notice Notice
		want   bool
	}{
		{"past a learned notice", Limits{}, Active{Held: true, Age: minute}, learned, true},
		{"before it", Limits{}, Active{Held: true, Age: minute - 1}, learned, false},
		{"a limit will end it", limited, Active{Held: true, Age: minute}, learned, false},
		{"a limit that was said never does", Limits{ExpireAfter: limit.Never, Source: Said}, held(minute, Lives), learned, true},
		{"the owner's own limit will", Limits{}, held(minute, Lives), learned, false},
		{"a notice that was said counts beside a limit", limited, Active{Held: true, Age: minute}, said, true},
		{"a learned limit that is not reached", Limits{ExpireAfter: time.Hour, Source: Learned}, Active{Held: true, Age: time.Hour - 1}, learned, false},
		{"a learned limit, as it may not end it", Limits{ExpireAfter: time.Hour, Source: Learned}, Active{Held: true, Age: time.Hour}, learned, true},
		{"a notice of never", Limits{}, Active{Held: true, Age: 1e6 * time.Hour}, Notice{After: limit.Never, Said: true}, false},
		{"what outlived its owner", Limits{}, Active{Held: true, Age: minute, Owner: Orphaned}, learned, true},
		{"an owner that cannot be checked", Limits{}, Active{Held: true, Age: minute, Owner: Unknown}, learned, true},
		{"a dead owner", Limits{}, Active{Held: true, Age: minute, Owner: Gone}, learned, false},
		{"a waiter", Limits{}, Active{Held: true, Age: minute, Owner: Waiter}, learned, false},
		{"an empty lock", Limits{}, Active{Held: true, Age: minute, Empty: true}, learned, false},
		{"a lock with only a pid, which no limit ends", limited, Active{Held: true, Age: time.Hour, Owner: Untouched}, learned, true},
		{"no lock", Limits{}, Active{Age: minute}, learned, false},
	} {
		if got := Overdue(c.limits, c.active, c.notice); got != c.want {
			t.Errorf("%s: %v", c.claim, got)
		}
	}
}

func TestAnAtomIsDueAfterTheTimeThatDueInReturns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits, last, _ := anySituation(t)
		last.Age += time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "part of a second"))
		in := DueIn(limits, last)
		if Due(limits, last) != (in == 0) {
			t.Fatalf("due in %v", in)
		}
		last.Age += in
		if in != limit.Never && !Due(limits, last) {
			t.Fatalf("not due after %v", in)
		}
	})
}

func TestShownAgeAndRemainingTimeAddUpToIfElapsed(t *testing.T) {
	const want = "too soon: completed 9s ago, IfElapsed is 10s; due in 1s"
	if got := reason(TooSoon, Limits{IfElapsed: 10 * time.Second}, ago(9600*time.Millisecond), Active{}); got != want {
		t.Errorf("reason is %q, want %q", got, want)
	}
}

func TestFromStartMakesAnAtomDueEarlyByItsSlack(t *testing.T) {
	for interval, want := range map[time.Duration]time.Duration{
		time.Second: time.Second, 10 * time.Second: time.Second, 25 * time.Second: 2 * time.Second, minute: 6 * time.Second,
		5 * minute: 30 * time.Second, 12 * time.Hour: 30 * time.Second, limit.Never: 30 * time.Second,
		24 * time.Hour: time.Hour + 30*time.Second, 7 * 24 * time.Hour: time.Hour + 30*time.Second, 25 * time.Hour: 30 * time.Second,
	} {
		if got := fromStartSlack(interval); got != want {
			t.Errorf("%v: %v, want %v", interval, got, want)
		}
		limits, started := Limits{IfElapsed: interval}, Last{Completed: true, FromStart: true, Age: interval - want}
		if interval != limit.Never && !Due(limits, started) {
			t.Errorf("%v: not due %v after the start", interval, started.Age)
		}
		if started.Age--; Due(limits, started) {
			t.Errorf("%v: due %v after the start", interval, started.Age)
		}
		if started.FromStart = false; Due(limits, started) {
			t.Errorf("%v: due %v after the completion", interval, started.Age)
		}
	}
}

func reason(step Step, limits Limits, last Last, active Active) string {
	return words[step] + ": " + figuresOf(step, limits, last, active)
}
