package learn

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"adlock/lib/limit"
)

// trained is a state after n successes of about d each.
func trained(n int, d time.Duration) State {
	r := rand.New(rand.NewPCG(1, 2))
	var s State
	for range n {
		s.Succeeded(d + time.Duration(r.Int64N(int64(d)/10)))
	}
	return s
}

func within(t *testing.T, what string, got, least, most time.Duration) {
	t.Helper()
	if got < least || got > most {
		t.Errorf("%s is %s, want %s to %s", what, got, least, most)
	}
}

func TestFewRunsDecideNothing(t *testing.T) {
	s := trained(Enough-1, time.Hour)
	if got := s.ExpireAfter(0); got != limit.Never {
		t.Errorf("ExpireAfter is %s", got)
	}
	if got := s.IfElapsed(); got != LeastIfElapsed {
		t.Errorf("IfElapsed is %s", got)
	}
}

func TestAConstantLoadIsGrantedAFewTimesItsRuntime(t *testing.T) {
	s := trained(100, 10*time.Minute)
	within(t, "ExpireAfter", s.ExpireAfter(0), 30*time.Minute, 43*time.Minute)
	within(t, "IfElapsed", s.IfElapsed(), 10*time.Minute, 13*time.Minute)
}

func TestTheLongRunOnceAWeekIsRemembered(t *testing.T) {
	s := trained(100, 5*time.Minute)
	s.Succeeded(3 * time.Hour)
	for range epoch {
		s.Succeeded(5 * time.Minute)
	}
	if got := s.ExpireAfter(0); got < 3*time.Hour {
		t.Errorf("ExpireAfter is %s after a run of 3h a thousand runs ago", got)
	}
	for range epoch {
		s.Succeeded(5 * time.Minute)
	}
	within(t, "ExpireAfter, long after", s.ExpireAfter(0), 10*time.Minute, 30*time.Minute)
}

func TestEndsInARowDoubleTheLimitUntilRunsFit(t *testing.T) {
	for name, s := range map[string]State{"of minutes": trained(50, 3*time.Minute), "of seconds": trained(50, time.Second)} {
		before := s.ExpireAfter(0)
		for range 4 {
			s.Ended(s.ExpireAfter(0))
		}
		if got := s.ExpireAfter(0); got < 8*before {
			t.Errorf("runs %s: ExpireAfter went from %s to %s only", name, before, got)
		}
		for range 100 {
			s.Ended(s.ExpireAfter(0))
		}
		if got := s.ExpireAfter(0); got != Ceiling {
			t.Errorf("runs %s: ExpireAfter is %s in the end", name, got)
		}
	}
}

func TestOccasionalHangsEndAtTheFirstLimitAgain(t *testing.T) {
	s := trained(100, 3*time.Minute)
	before := s.ExpireAfter(0)
	for range 10 {
		s.Ended(s.ExpireAfter(0))
		for range 100 {
			s.Succeeded(3 * time.Minute)
		}
	}
	within(t, "ExpireAfter", s.ExpireAfter(0), before/2, before*5/4)
}

func TestALongHealthyRunIsSoonNotEndedAnyMore(t *testing.T) {
	s := trained(100, 5*time.Minute)
	for tries := 0; s.ExpireAfter(0) <= time.Hour; tries++ {
		if tries > 3 {
			t.Fatalf("a run of 1h is ended again and again: ExpireAfter is %s", s.ExpireAfter(0))
		}
		s.Ended(s.ExpireAfter(0))
		for range 20 {
			s.Succeeded(5 * time.Minute)
		}
	}
	s.Succeeded(time.Hour)
	if got := s.ExpireAfter(0); got < time.Hour {
		t.Errorf("ExpireAfter is %s after a success of 1h", got)
	}
}

func TestExpireAfterIsNotBelowAFiniteIfElapsed(t *testing.T) {
	s := trained(100, time.Minute)
	if got := s.ExpireAfter(time.Hour); got != time.Hour {
		t.Errorf("ExpireAfter is %s with IfElapsed 1h", got)
	}
	if got := s.ExpireAfter(limit.Never); got >= time.Hour {
		t.Errorf("ExpireAfter is %s with IfElapsed never", got)
	}
}

func TestSpamStretchesTheIntervalUntilItCalmsDown(t *testing.T) {
	s := trained(100, 10*time.Second)
	for range 10 {
		s.Asked(int(s.IfElapsed() / time.Second)) // as if asked for every second
	}
	if got := s.IfElapsed(); got != LeastIfElapsed<<stretches || !s.Spammed() {
		t.Errorf("IfElapsed is %s", got)
	}
	for range 10 {
		s.Asked(int(s.IfElapsed() / time.Minute)) // as if asked for every minute, by cron
	}
	if got := s.IfElapsed(); got != LeastIfElapsed || s.Spammed() {
		t.Errorf("IfElapsed is %s after it calmed down", got)
	}
}

func TestCronEveryMinuteIsNoSpamHoweverLongTheRunsAre(t *testing.T) {
	s := trained(100, 3*time.Hour)
	if s.Asked(int(s.IfElapsed() / time.Minute)) {
		t.Errorf("IfElapsed is %s", s.IfElapsed())
	}
}

func TestADamagedStateIsForgottenAltogether(t *testing.T) {
	for _, line := range []string{
		"learn.runs=-1", "learn.runs=x", "learn.mean=NaN", "learn.mean=1e300", "learn.mean=-3", "learn.longest=Inf",
		"learn.ended=-5s", "learn.doubled=99", "learn.hangs=maybe", "learn.stretched=60",
	} {
		values := map[string]string{"learn.runs": "100", "learn.mean": "3"}
		key, value, _ := strings.Cut(line, "=")
		values[key] = value
		if got := Parse(values); got != (State{}) {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

// lesson is one step of a history.
type lesson struct {
	Kind    int
	Runtime time.Duration
	Asked   int
}

func learned(t *rapid.T) State {
	var s State
	for _, l := range rapid.SliceOf(rapid.Make[lesson]()).Draw(t, "history") {
		switch runtime := max(0, l.Runtime); l.Kind % 4 {
		case 0:
			s.Ended(s.ExpireAfter(0))
		case 1:
			s.Ended(runtime)
		case 2:
			s.Asked(max(0, l.Asked))
		default:
			s.Succeeded(runtime)
		}
	}
	return s
}

func TestWhateverWasLearnedTheLimitsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := learned(t)
		ifElapsed := time.Duration(rapid.Int64Range(0, int64(limit.Never)).Draw(t, "IfElapsed"))
		got := s.ExpireAfter(ifElapsed)
		if most := max(Ceiling, ifElapsed); s.Runs >= Enough && ifElapsed != limit.Never && (got < max(Floor, ifElapsed) || got > most) {
			t.Errorf("ExpireAfter(%s) is %s", ifElapsed, got)
		}
		if got := s.IfElapsed(); got < LeastIfElapsed || got > Ceiling<<stretches {
			t.Errorf("IfElapsed is %s", got)
		}
		if s.ExplainExpireAfter(ifElapsed) == "" || s.ExplainIfElapsed() == "" {
			t.Error("no explanation")
		}
	})
}

func TestParseReadsWhatFormatWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := learned(t)
		values := map[string]string{}
		for _, line := range s.Lines() {
			key, value, found := strings.Cut(line, "=")
			if !found || !Is(key) || strings.ContainsAny(line, "\n ") {
				t.Fatalf("line %q", line)
			}
			values[key] = value
		}
		if got := Parse(values).Lines(); !reflect.DeepEqual(got, s.Lines()) {
			t.Errorf("wrote %q, read %q", s.Lines(), got)
		}
	})
}

func TestTheExplanationEndsWithTheLimit(t *testing.T) {
	hung := trained(100, 3*time.Minute)
	hung.Ended(time.Hour)
	weekly := trained(100, 3*time.Minute)
	weekly.Succeeded(time.Hour)
	for name, s := range map[string]State{
		"new": {}, "few": trained(6, time.Minute), "quick": trained(50, time.Second), "steady": trained(100, 3*time.Minute),
		"hung": hung, "weekly": weekly,
	} {
		for _, ifElapsed := range []time.Duration{0, time.Hour, limit.Never} {
			text, want := s.ExplainExpireAfter(ifElapsed), limit.Format(s.ExpireAfter(ifElapsed))
			if s.Runs < Enough {
				want = "no limit until there are 5"
			}
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q does not say %s", name, text, want)
			}
		}
	}
}
