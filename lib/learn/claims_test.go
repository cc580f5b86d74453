package learn

import (
	"math"
	"slices"
	"testing"
	"time"

	"adlock/lib/limit"
)

// of is the logarithm that stands for a runtime.
func of(d time.Duration) float64 { return math.Log(d.Seconds()) }

// taught is a state after successes of these lengths.
func taught(runtimes ...time.Duration) State {
	var s State
	for _, d := range runtimes {
		s.Succeeded(d)
	}
	return s
}

// about fails unless two lengths are the same but for the rounding of logarithms.
func about(t *testing.T, what string, got, want time.Duration) {
	t.Helper()
	within(t, what, got, want-want/1000, want+want/1000)
}

func TestTheLearnedExpireAfterIsExplainedStepByStep(t *testing.T) {
	const m = time.Minute
	steady := State{Runs: 1000, mean: of(10 * m), deviation: 0.1, now: of(12 * m)}
	with := func(change func(*State)) State { s := steady; change(&s); return s }
	const told = "1000 successful runs: typically 10m, give or take x1.35: 10m x 1.35^4 = 33m12s"
	for _, c := range []struct {
		state     State
		ifElapsed time.Duration
		want      string
	}{
		{State{}, 0, "0 successful runs, fewer than 5: no limit until there are 5"},
		{State{Runs: 4, mean: of(m)}, 2 * time.Hour, "4 successful runs, fewer than 5: no limit until there are 5"},
		{State{Runs: 5, mean: of(m), now: of(m)}, 0, "5 successful runs: typically 1m, give or take x1.35: 1m x 1.35^4 = 3m19s, at least 10m"},
		{steady, 0, told},
		{steady, limit.Never, told},
		{steady, steady.estimate(), told},
		{State{Runs: 1000, mean: of(time.Hour), now: of(time.Hour), inARow: 9}, 0,
			"1000 successful runs: typically 1h, give or take x1.35: 1h x 1.35^4 = 3h19m12s, doubled 8 times as runs were ended by force, but no more than a week: 1w"},
		{steady, time.Hour, told + ", at least 1h as IfElapsed is"},
		{State{Runs: 1000, mean: of(36 * time.Hour), deviation: 1, now: of(72 * time.Hour)}, 0,
			"1000 successful runs: typically 1d12h, give or take x2.72: 1d12h x 2.72^4, but no more than a week: 1w"},
		{with(func(s *State) { s.deviation = 1 }), 0,
			"1000 successful runs: typically 10m, give or take x2.72: 10m x 2.72^4 = 9h5m59s, but no more than 4 times the longest run: 48m, while so few are known 2h"},
		{with(func(s *State) { s.deviation, s.before = 0.5, of(time.Hour) }), 0,
			"1000 successful runs: typically 10m, give or take x1.65: 10m x 1.65^4 = 1h13m53s, while so few are known 1h15m5s"},
		{with(func(s *State) { s.deviation, s.now = 0.5, of(200*m) }), 0,
			"1000 successful runs: typically 10m, give or take x1.65: 10m x 1.65^4 = 1h13m53s, while so few are known 1h15m5s, but the longest run of late took 3h20m"},
		{with(func(s *State) { s.deviation, s.now = 0.5, of(1200*m) }), 0,
			"1000 successful runs: typically 10m, give or take x1.65: 10m x 1.65^4 = 1h13m53s, while so few are known 1h15m5s, but the longest run of late took 20h, of which 16h40m count"},
		{State{Runs: 1000, mean: of(2500 * time.Millisecond), now: of(2500 * time.Millisecond)}, 0,
			"1000 successful runs: typically 2.5s, give or take x1.35: 2.5s x 1.35^4 = 8s, at least 10m"},
		{State{Runs: 1000, mean: of(10600 * time.Millisecond), now: of(10600 * time.Millisecond)}, m,
			"1000 successful runs: typically 11s, give or take x1.35: 11s x 1.35^4 = 35s, at least 10m"},
		{State{Runs: 5, mean: of(time.Second), deviation: 1.5, now: of(100 * time.Hour)}, 0, // a longest run that adds nothing
			"5 successful runs: typically 1s, give or take x4.48: 1s x 4.48^4 = 6m43s, while so few are known 2h"},
		{with(func(s *State) { s.doubled = 1 }), 0, told + ", doubled once as a run was ended by force: 1h6m24s"},
		{with(func(s *State) { s.doubled, s.inARow = 3, 1 }), 0, told + ", doubled 3 times as runs were ended by force, but no more than 20 x 10m: 3h20m"},
		{with(func(s *State) { s.doubled, s.inARow = 1, 2 }), 0, told + ", doubled 2 times as runs were ended by force: 2h12m48s"},
		{with(func(s *State) { s.hangs, s.inARow = true, 1 }), 0, told + ", doubled once as a run was ended by force: 1h6m24s"},
	} {
		if got := c.state.ExplainExpireAfter(c.ifElapsed); got != c.want {
			t.Errorf("told is\n%q, want\n%q", got, c.want)
		}
	}
}

func TestTheLearnedIfElapsedIsExplainedStepByStep(t *testing.T) {
	for _, c := range []struct {
		state State
		want  string
	}{
		{State{Runs: 4, mean: of(time.Hour)}, "4 successful runs, fewer than 5: 1m"},
		{State{Runs: 5, mean: of(time.Hour)}, "5 successful runs: typically 1h"},
		{State{Runs: 5, mean: of(2 * time.Second)}, "5 successful runs: typically 2s, at least 1m"},
		{State{Runs: 5, mean: of(time.Hour), stretched: 1}, "5 successful runs: typically 1h, stretched x2 as it was asked for too often = 2h"},
		{State{Runs: 5, mean: of(time.Hour), stretched: 4}, "5 successful runs: typically 1h, stretched x16 as it was asked for too often = 16h"},
	} {
		if got := c.state.ExplainIfElapsed(); got != c.want {
			t.Errorf("told is %q, want %q", got, c.want)
		}
	}
}

func TestTheTypicalRuntimeIsTheGeometricMeanOfTheFirstRuns(t *testing.T) {
	about(t, "of one", taught(time.Hour).Typical(), time.Hour)
	about(t, "of three", taught(time.Minute, 2*time.Minute, 4*time.Minute).Typical(), 2*time.Minute)
	if got := (State{}).Typical(); got != 0 {
		t.Errorf("of none it is %v", got)
	}
	about(t, "shorter than a second", taught(time.Millisecond).Typical(), time.Second)
}

func TestALaterRunMovesTheLearnedMeanByA32ndOfTheDifference(t *testing.T) {
	s := State{Runs: 1000, mean: of(time.Minute), deviation: 0.5}
	s.Succeeded(time.Hour)
	off := math.Log(60)
	about(t, "typical", s.Typical(), time.Duration(math.Exp(of(time.Minute)+off/32)*float64(time.Second)))
	if want := 0.5 + (off-0.5)/32; math.Abs(s.deviation-want) > 1e-9 {
		t.Errorf("deviation is %v, want %v", s.deviation, want)
	}
	s = State{Runs: 1000, mean: of(time.Hour), deviation: 0.5}
	s.Succeeded(time.Minute) // as far below the mean as the hour was above it
	if want := 0.5 + (off-0.5)/32; math.Abs(s.deviation-want) > 1e-9 {
		t.Errorf("deviation is %v, want %v", s.deviation, want)
	}
}

func TestTheLongestRuntimeIsForgottenAfter1000To2000Runs(t *testing.T) {
	for _, before := range []int{0, 1, 998, 999, 1000} {
		s := taught(slices.Repeat([]time.Duration{time.Minute}, before)...)
		s.Succeeded(time.Hour)
		for range 999 {
			s.Succeeded(time.Minute)
		}
		about(t, "the longest, 999 runs later", s.Longest(), time.Hour)
		for range 1001 {
			s.Succeeded(time.Minute)
		}
		about(t, "the longest, 2000 runs later", s.Longest(), time.Minute)
	}
}

func TestALearnedExpireAfterIsAtMostAWeekWithoutIfElapsed(t *testing.T) {
	s := State{Runs: 100, mean: of(30 * 24 * time.Hour), now: of(30 * 24 * time.Hour)}
	if got := s.ExpireAfter(0); got != 168*time.Hour {
		t.Errorf("ExpireAfter is %v", got)
	}
	if got := s.Typical(); got != 168*time.Hour {
		t.Errorf("typical is %v", got)
	}
}

func TestForcedEndsDoubleTheLearnedLimitWithinBounds(t *testing.T) {
	steady := State{Runs: 1000, mean: of(10 * time.Minute), deviation: 0.1, now: of(10 * time.Minute)}
	once := steady.ExpireAfter(0)
	for _, c := range []struct {
		claim  string
		change func(*State)
		want   time.Duration
	}{
		{"one that was ended", func(s *State) { s.Ended(once) }, 2 * once},
		{"two in a row", func(s *State) { s.Ended(once); s.Ended(2 * once) }, 4 * once},
		{"three in a row", func(s *State) { s.Ended(once); s.Ended(2 * once); s.Ended(4 * once) }, 8 * once},
		{"two with a success between them", func(s *State) { s.Ended(once); s.Succeeded(10 * time.Minute); s.Ended(2 * once) }, 4 * once},
		{"two in a row, where two are kept", func(s *State) { s.doubled, s.inARow = 2, 2 }, 8 * once},
		{"hung, and succeeded since", func(s *State) { s.hangs = true }, once},
	} {
		s := steady
		c.change(&s)
		within(t, c.claim, s.ExpireAfter(0), c.want-c.want/20, c.want+c.want/20)
	}
	known := State{Runs: 5, mean: of(10 * time.Minute), now: of(10 * time.Minute), doubled: 3}
	about(t, "five runs, doubled three times", known.ExpireAfter(0), 200*time.Minute)
	short := State{Runs: 5, mean: of(time.Second), now: of(time.Second), doubled: 3}
	if got := short.ExpireAfter(0); got != 20*time.Minute {
		t.Errorf("of five short runs, doubled three times: %v", got)
	}
}

func TestAFourthForcedEndUndoesTheThreeDoublings(t *testing.T) {
	s := taught(slices.Repeat([]time.Duration{time.Minute}, 50)...)
	before := s.ExpireAfter(0)
	for range 3 {
		s.Ended(time.Hour)
		s.Succeeded(time.Minute)
	}
	if s.hangs || s.doubled != 3 {
		t.Fatalf("after three: %+v", s)
	}
	s.Ended(time.Hour)
	s.Succeeded(time.Minute)
	if !s.hangs || s.doubled != 0 {
		t.Fatalf("after four: %+v", s)
	}
	within(t, "ExpireAfter", s.ExpireAfter(0), before/2, before*5/4)
	s.Ended(time.Hour)
	s.Succeeded(time.Minute)
	if !s.hangs || s.doubled != 0 {
		t.Errorf("one more that hung: %+v", s)
	}
}

func TestASuccessLongerThanAnEndedRunUndoesDoublings(t *testing.T) {
	hung := State{Runs: 100, mean: of(time.Minute), now: of(time.Minute), hangs: true, ended: time.Hour}
	for _, c := range []struct {
		runtime time.Duration
		healthy bool
	}{{time.Hour, false}, {time.Hour + 1, true}} {
		s := hung
		s.Succeeded(c.runtime)
		if s.hangs == c.healthy || (s.ended == 0) != c.healthy {
			t.Errorf("a success of %v: %+v", c.runtime, s)
		}
	}
	s := State{Runs: 100, doubled: 3, ended: time.Hour}
	s.Succeeded(2 * time.Hour)
	if s.doubled != 1 || s.ended != 0 {
		t.Errorf("one doubling is kept: %+v", s)
	}
	s = State{Runs: 100, doubled: 3}
	s.Succeeded(2 * time.Hour)
	if s.doubled != 3 {
		t.Errorf("where no end is known, none is taken back: %+v", s)
	}
	s = State{ended: 1, doubled: 3}
	s.Succeeded(time.Hour)
	if s.doubled != 1 {
		t.Errorf("the shortest end counts too: %+v", s)
	}
}

func TestTheShortestRunEndedByForceIsRemembered(t *testing.T) {
	var s State
	if s.Heed() || s.Heed(nil, func(*State) {}) || !s.Heed(nil, func(s *State) { s.Ended(3 * time.Hour) }) || s.ended != 3*time.Hour {
		t.Errorf("lessons do not tell what they change: %+v", s)
	}
	for _, c := range []struct{ age, want time.Duration }{{time.Hour, time.Hour}, {2 * time.Hour, time.Hour}, {time.Minute, time.Minute}} {
		if s.Ended(c.age); s.ended != c.want {
			t.Errorf("after one at %v it is %v", c.age, s.ended)
		}
	}
}

func TestAThousandSuccessesUndoOneDoubling(t *testing.T) {
	s := State{hangs: true, doubled: 2, ended: time.Hour}
	again := func(n int) {
		for range n {
			s.Succeeded(time.Minute)
		}
	}
	again(999)
	if !s.hangs || s.doubled != 2 || s.since != 999 {
		t.Fatalf("after 999: %+v", s)
	}
	again(1)
	if s.hangs || s.doubled != 1 || s.since != 0 || s.ended != time.Hour {
		t.Fatalf("after 1000: %+v", s)
	}
	again(1000)
	if s.doubled != 0 || s.ended != 0 {
		t.Errorf("after 2000: %+v", s)
	}
	s.doubled = 1
	again(500)
	s.Ended(time.Hour)
	again(999)
	if s.doubled != 2 {
		t.Errorf("999 after one more that was ended: %+v", s)
	}
	again(1)
	if s.doubled != 1 {
		t.Errorf("1000 after it: %+v", s)
	}
}

func TestForcedEndsInARowAreCountedUpTo64(t *testing.T) {
	var s State
	for range 100 {
		s.Ended(time.Hour)
	}
	if s.inARow != 64 {
		t.Errorf("counted are %d", s.inARow)
	}
	s.Succeeded(time.Minute)
	if s.inARow != 0 {
		t.Errorf("after a success, %d", s.inARow)
	}
}

func TestTooFrequentRequestsStretchTheLearnedIfElapsed(t *testing.T) {
	hourly := State{Runs: 100, mean: of(time.Hour)}
	for _, c := range []struct {
		claim   string
		state   State
		tooSoon int
		want    int
	}{
		{"19 in a minute", State{}, 19, 0},
		{"20 in a minute", State{}, 20, 1},
		{"179 in an hour", hourly, 179, 0},
		{"180 in an hour", hourly, 180, 1},
		{"20 in two minutes", State{stretched: 1}, 20, 1},
		{"19 in two minutes", State{stretched: 1}, 19, 0},
		{"40 in two minutes", State{stretched: 1}, 40, 2},
		{"as much as can be, stretched four times", State{stretched: 4}, 10000, 4},
		{"none, not stretched", State{}, 0, 0},
	} {
		s := c.state
		if s.Asked(c.tooSoon); s.stretched != c.want {
			t.Errorf("%s: stretched %d", c.claim, s.stretched)
		}
		if s.Spammed() != (c.want > 0) {
			t.Errorf("%s: spammed is %v", c.claim, s.Spammed())
		}
	}
}

func TestNoLimitIsLearnedUntilEnoughRunsHaveSucceeded(t *testing.T) {
	s := State{doubled: 2, inARow: 3, hangs: true} // runs that were ended do not matter
	for s.Runs < Enough {
		if got := s.ExpireAfter(time.Hour); got != limit.Never {
			t.Fatalf("after %d runs it is %s", s.Runs, got)
		}
		if got := s.Notice(); got != Prior {
			t.Fatalf("after %d runs the notice is %s", s.Runs, got)
		}
		s.Succeeded(time.Minute)
	}
	if got := s.ExpireAfter(0); got != Floor || s.Notice() != LeastNotice {
		t.Errorf("of quick runs it is %s, and the notice %s", got, s.Notice())
	}
}
