package history

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"adlock/lib/runlog"
	"adlock/test/support/must"
)

var midnight = time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)

// at is an event of the one atom, n seconds after midnight.
func at(n int, e runlog.Event) runlog.Event {
	e.Time = midnight.Add(time.Duration(n) * time.Second)
	e.Program, e.Host, e.Operator, e.Operand = "p", "h", "run", "x"
	return e
}

func acquire(n int, token string) runlog.Event {
	return at(n, runlog.Event{Kind: runlog.Acquire, PID: 10, Token: token})
}

func release(n int, token string, held, status int) runlog.Event {
	return at(n, runlog.Event{Kind: runlog.Release, PID: 10, Token: token, Duration: runlog.Some(time.Duration(held) * time.Second), Status: runlog.Some(status)})
}

func read(n int, token string) runlog.Event {
	e := acquire(n, token)
	e.Shared = true
	return e
}

func replaced(n int, kind runlog.Kind, token string, age int) runlog.Event {
	return at(n, runlog.Event{Kind: kind, PID: 20, Owner: 10, OwnerToken: token, Age: runlog.Some(time.Duration(age) * time.Second)})
}

// tracked are the runs of these events.
func tracked(events ...runlog.Event) (runs []*Run) {
	t := Tracker{Run: func(_ *Atom, r *Run) { runs = append(runs, r) }}
	for i := range events {
		t.Add(&events[i])
	}
	t.Finish(midnight.Add(1000*time.Second), func(token string) Outcome { return map[string]Outcome{"gone": Lost}[token] })
	return runs
}

// describe returns each run as "token outcome start+held by".
func describe(events ...runlog.Event) (texts []string) {
	for _, r := range tracked(events...) {
		texts = append(texts, fmt.Sprintf("%s %s %v+%v by %d", r.Token, r.Outcome, r.Start.Sub(midnight), r.Held, r.By))
	}
	return texts
}

func TestEachRunGetsItsOutcomeFromTheEvents(t *testing.T) {
	expire := func(n int, token string, by int) runlog.Event {
		e := replaced(n, runlog.Expire, token, n)
		e.PID = by
		return e
	}
	signalled := release(9, "a", 9, 143)
	signalled.Signal = "TERM"
	late := replaced(9, runlog.Takeover, "a", 5)
	late.Node, late.OwnerNode = "dax", "dax"
	lost := runlog.Event{Time: midnight.Add(7 * time.Second), Kind: runlog.Lost, Program: "p", Host: "h", Token: "a"}
	for claim, c := range map[string]struct {
		events []runlog.Event
		want   string
	}{
		"released":                   {[]runlog.Event{acquire(0, "a"), release(5, "a", 5, 0)}, "a success 0s+5s by 0"},
		"failed":                     {[]runlog.Event{acquire(0, "a"), release(5, "a", 5, 3)}, "a failure 0s+5s by 0"},
		"ended by a newcomer":        {[]runlog.Event{acquire(0, "a"), expire(8, "a", 20), replaced(9, runlog.Takeover, "a", 9)}, "a ended 0s+9s by 20"},
		"ended after a while":        {[]runlog.Event{acquire(0, "a"), expire(3, "a", 20), replaced(9, runlog.Takeover, "a", 3)}, "a ended 0s+9s by 20"},
		"expired at a clock's step":  {[]runlog.Event{acquire(0, "a"), replaced(3603, runlog.Expire, "a", 3), replaced(3609, runlog.Takeover, "a", 3)}, "a ended 0s+9s by 20"},
		"stopped after a while":      {[]runlog.Event{acquire(0, "a"), replaced(40, runlog.Stop, "a", 40), replaced(50, runlog.Clear, "a", 40)}, "a stopped 0s+50s by 20"},
		"ended by its supervisor":    {[]runlog.Event{acquire(0, "a"), expire(8, "a", 10), signalled}, "a ended 0s+9s by 10"},
		"expired and yet succeeded":  {[]runlog.Event{acquire(0, "a"), expire(8, "a", 20), release(9, "a", 9, 0)}, "a success 0s+9s by 0"},
		"not ended by a newcomer":    {[]runlog.Event{acquire(0, "a"), expire(7, "a", 20), at(8, runlog.Event{Kind: runlog.Stuck, PID: 20, OwnerToken: "a"}), signalled}, "a failure 0s+9s by 0"},
		"found dead":                 {[]runlog.Event{acquire(0, "a"), replaced(50, runlog.Reclaim, "a", 50)}, "a orphaned 0s+50s by 20"},
		"stopped by a person":        {[]runlog.Event{acquire(0, "a"), replaced(49, runlog.Stop, "a", 49), replaced(50, runlog.Clear, "a", 50)}, "a stopped 0s+50s by 20"},
		"cleared":                    {[]runlog.Event{acquire(0, "a"), replaced(50, runlog.Clear, "a", 50)}, "a cleared 0s+50s by 20"},
		"a step of the wall clock":   {[]runlog.Event{acquire(0, "a"), release(3605, "a", 5, 0)}, "a success 0s+5s by 0"},
		"beginning rotated":          {[]runlog.Event{release(50, "a", 30, 0)}, "a success 20s+30s by 0"},
		"ended beginning rotated":    {[]runlog.Event{replaced(50, runlog.Takeover, "a", 30)}, "a ended 20s+30s by 20"},
		"locks with only a pid":      {[]runlog.Event{replaced(50, runlog.Reclaim, "", 30), replaced(90, runlog.Reclaim, "", 20)}, " orphaned 20s+30s by 20| orphaned 1m10s+20s by 20"},
		"told twice":                 {[]runlog.Event{acquire(0, "a"), replaced(9, runlog.Takeover, "a", 9), release(10, "a", 10, 0)}, "a ended 0s+9s by 20"},
		"told by a late newcomer":    {[]runlog.Event{acquire(0, "a"), release(5, "a", 5, 130), acquire(6, "b"), release(7, "b", 1, 0), late}, "a failure 0s+5s by 0|b success 6s+1s by 0"},
		"running":                    {[]runlog.Event{acquire(900, "a")}, "a running 15m0s+1m40s by 0"},
		"its lock is gone":           {[]runlog.Event{acquire(900, "gone")}, "gone lost 15m0s+0s by 0"},
		"begun while it was read":    {[]runlog.Event{acquire(1001, "gone")}, "gone running 16m41s+0s by 0"},
		"next begins before its end": {[]runlog.Event{acquire(0, "a"), acquire(5, "b"), release(5, "a", 5, 0), release(7, "b", 2, 0)}, "a success 0s+5s by 0|b success 5s+2s by 0"},
		"not run for trouble":        {[]runlog.Event{at(3, runlog.Event{Kind: runlog.NotRun, PID: 7, Status: runlog.Some(74)})}, " not-run 3s+0s by 0"},
		"as many readers as there are": {
			[]runlog.Event{read(0, "a"), read(1, "b"), read(2, "c"), read(3, "d"), release(9, "b", 8, 0), release(10, "a", 10, 0), release(11, "d", 8, 3), release(12, "c", 10, 0)},
			"b success 1s+8s by 0|a success 0s+10s by 0|d failure 3s+8s by 0|c success 2s+10s by 0",
		},
		"readers that have not ended": {[]runlog.Event{read(900, "a"), read(950, "b"), read(990, "c")}, "a running 15m0s+1m40s by 0|b running 15m50s+50s by 0|c running 16m30s+10s by 0"},
		"told after the next writer":  {[]runlog.Event{read(0, "a"), read(0, "b"), acquire(5, "w"), release(5, "a", 5, 0), release(5, "b", 5, 0), release(7, "w", 2, 0)}, "a success 0s+5s by 0|b success 0s+5s by 0|w success 5s+2s by 0"},
		"readers ended one by one":    {[]runlog.Event{read(0, "a"), read(1, "b"), replaced(8, runlog.Takeover, "a", 8), replaced(9, runlog.Reclaim, "b", 8), acquire(9, "w")}, "a ended 0s+8s by 20|b orphaned 1s+8s by 20|w running 9s+16m31s by 0"},
		"a reader, two writers later": {[]runlog.Event{read(0, "a"), read(1, "b"), acquire(5, "v"), release(6, "v", 1, 0), acquire(7, "w"), acquire(8, "x"), release(9, "x", 1, 0)}, "v success 5s+1s by 0|a lost 0s+8s by 0|b lost 1s+7s by 0|x success 8s+1s by 0|w running 7s+16m33s by 0"},
		"lost, known by its token":    {[]runlog.Event{acquire(0, "a"), lost, acquire(50, "b"), release(60, "b", 10, 0)}, "b success 50s+10s by 0|a lost 0s+7s by 0"},
		"ended while it released":     {[]runlog.Event{acquire(0, "a"), lost, replaced(9, runlog.Takeover, "a", 9)}, "a ended 0s+9s by 20"},
		"end never came":              {[]runlog.Event{acquire(0, "a"), acquire(5, "b"), acquire(9, "c")}, "a lost 0s+9s by 0|b lost 5s+4s by 0|c running 9s+16m31s by 0"},
	} {
		if got := strings.Join(describe(c.events...), "|"); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", claim, got, c.want)
		}
	}
}

func TestAMissingCommandIsAFailedRun(t *testing.T) {
	missing := at(3, runlog.Event{Kind: runlog.Missing, PID: 7, Status: runlog.Some(127)})
	runs := tracked(acquire(0, "a"), missing, release(5, "a", 5, 0))
	if len(runs) != 2 || runs[0].Outcome != Failed || runs[0].Status.Value != 127 || runs[0].Completed() || runs[1].Outcome != Succeeded {
		t.Errorf("%+v", runs)
	}
}

func TestATrackerKeepsOnlyTheLastEndedRunOfEachAtom(t *testing.T) {
	tracker := Tracker{Run: func(*Atom, *Run) {}}
	for i := range 10000 {
		token := fmt.Sprint(i)
		begin, end := acquire(2*i, token), release(2*i+1, token, 1, 0)
		tracker.Add(&begin)
		tracker.Add(&end)
	}
	if len(tracker.open) != 1 || len(tracker.Atoms()[0].open) != 0 {
		t.Errorf("%d tokens, %d runs remembered", len(tracker.open), len(tracker.Atoms()[0].open))
	}
}

func TestRunlogsOfAllHostsAreReadInOrder(t *testing.T) {
	dir := t.TempDir()
	for n, host := range []string{"one", "two", "one", "three", "two"} {
		log := runlog.Log{Dir: dir, Host: host}
		must.Do(t, log.Append(runlog.Event{Time: midnight.Add(time.Duration(n) * time.Second), Kind: runlog.Empty, PID: n}))
	}
	damage := must.Get(os.OpenFile(filepath.Join(dir, "program.two.runlog"), os.O_APPEND|os.O_WRONLY, 0))(t)
	fmt.Fprintln(damage, "what is this")
	damage.Close()
	var pids []int
	damaged, err := Each(Read(dir), func(e *runlog.Event) { pids = append(pids, e.PID) })
	if err != nil || !slices.Equal(pids, []int{0, 1, 2, 3, 4}) || damaged != 1 {
		t.Errorf("%v, %d damaged, %v", pids, damaged, err)
	}
}

func TestFollowYieldsEventsOfEveryHost(t *testing.T) {
	dir := t.TempDir()
	write := func(host string, pid int) {
		t.Helper()
		log := runlog.Log{Dir: dir, Host: host}
		must.Do(t, log.Append(runlog.Event{Kind: runlog.Empty, PID: pid}))
	}
	write("one", 1)
	read := make(chan int)
	go func() {
		for e := range Follow(dir, "two", func() {}) {
			read <- e.PID
		}
	}()
	comes := func(want int) {
		t.Helper()
		select {
		case pid := <-read:
			if pid != want {
				t.Fatal(pid)
			}
		case <-time.After(time.Minute):
			t.Fatal("nothing came")
		}
	}
	comes(1)
	write("two", 2)
	comes(2)
	write("one", 3)
	comes(3)
}

func TestAnEndedRunHasTheLimitOfItsExpireEvent(t *testing.T) {
	begin := acquire(0, "a")
	begin.ExpireAfter = runlog.Some(2 * time.Hour)
	expire := at(3, runlog.Event{Kind: runlog.Expire, PID: 20, Owner: 10, OwnerToken: "a", ExpireAfter: runlog.Some(3 * time.Second)})
	end := replaced(4, runlog.Takeover, "a", 4)
	if runs := tracked(begin, expire, end); len(runs) != 1 || runs[0].ExpireAfter.Value != 3*time.Second {
		t.Errorf("%+v", runs)
	}
}

func TestTheSamePidOnAnotherMachineIsNoSupervisor(t *testing.T) {
	for node, own := range map[string]bool{"a": true, "b": false} {
		r := Run{PID: 7, Node: "a", By: 7, ByNode: node}
		if ender, self := r.Ender(); self != own || ender != "7 on "+node {
			t.Errorf("%s: %s %v", node, ender, self)
		}
	}
}

// share is how much of the values is at most v.
func share(values []time.Duration, v time.Duration) float64 {
	n := 0
	for _, value := range values {
		if value <= v {
			n++
		}
	}
	return float64(n) / float64(len(values))
}

func TestQuantileIsTheSmallestValueThatCoversItsShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Map(rapid.Int64Min(0), func(n int64) time.Duration { return time.Duration(n) }), 1, 200).Draw(t, "values")
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		var d Durations
		for _, v := range values {
			d.Add(v)
		}
		got := d.Quantile(q)
		if !slices.Contains(values, got) || share(values, got) < q {
			t.Fatalf("quantile %v of %v is %v", q, values, got)
		}
		for _, v := range values {
			if v < got && share(values, v) >= q {
				t.Fatalf("quantile %v of %v is %v, though %v would do", q, values, got, v)
			}
		}
		if d.Count() != len(values) || d.Min() != slices.Min(values) || d.Max() != slices.Max(values) {
			t.Fatalf("%d from %v to %v", d.Count(), d.Min(), d.Max())
		}
	})
}

func TestDurationsMayBeAddedAfterAQuery(t *testing.T) {
	var d Durations
	if d.Quantile(0.5) != 0 || d.Min() != 0 || d.Max() != 0 || d.Count() != 0 {
		t.Error("no durations are not zero")
	}
	for _, v := range []time.Duration{3, 1, -5} {
		d.Add(v)
		d.Max()
	}
	if d.Min() != 0 || d.Quantile(0.5) != 1 || d.Max() != 3 {
		t.Errorf("%v, %v, %v", d.Min(), d.Quantile(0.5), d.Max())
	}
}

func TestByTimeWeighsEachDurationByItsLength(t *testing.T) {
	var d Durations
	for _, v := range []time.Duration{1, 1, 1, 1, 1, 1, 4} {
		d.Add(v)
	}
	if d.Sum() != 10 || d.ByTime(0.6) != 1 || d.ByTime(0.61) != 4 || d.ByTime(1) != 4 {
		t.Errorf("%v: %v, %v, %v", d.Sum(), d.ByTime(0.6), d.ByTime(0.61), d.ByTime(1))
	}
	if shorter := d.Below(4); shorter.Count() != 6 || shorter.Max() != 1 || d.Count() != 7 {
		t.Errorf("%d below 4, %d in all", shorter.Count(), d.Count())
	}
}
