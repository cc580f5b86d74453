package learn

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"adlock/lib/limit"
)

func within(t *testing.T, what string, got, least, most time.Duration) {
	t.Helper()
	if got < least || got > most {
		t.Errorf("%s is %s, want %s to %s", what, got, least, most)
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

func TestLearnedLimitsAreBoundedAfterAnyHistory(t *testing.T) {
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
