package judge

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

const second = time.Second

func TestTheChaosJudgeFindsEachBrokenPromise(t *testing.T) {
	const half = second / 2
	run := func(begin, end time.Duration, fence uint64, change func(*Ran)) Ran {
		r := Ran{ID: fmt.Sprint(fence), Atom: "x", Begin: begin, End: end, Alone: true, Fence: fence}
		if change != nil {
			change(&r)
		}
		return r
	}
	locked := func(r *Ran) { r.Alone = false }
	first := run(second, 3*second, 1, nil)
	killed := run(second, 3*second, 1, func(r *Ran) { r.Killed, r.Lost = true, 2*second }) // its death may be seen late
	for name, c := range map[string]struct {
		first, next Ran
		overlaps    int
		overlap     time.Duration
	}{
		"one after the other":            {first, run(4*second, 5*second, 2, nil), 0, 0},
		"two at once":                    {first, run(2*second, 5*second, 2, nil), 1, second},
		"one within the other":           {first, run(2*second, 5*half, 2, nil), 1, half},
		"two atoms":                      {first, run(2*second, 5*second, 2, func(r *Ran) { r.Atom = "y" }), 0, 0},
		"the file was locked":            {first, run(4*second, 5*second, 2, locked), 1, 0},
		"two at once, and a locked file": {first, run(2*second, 5*second, 2, locked), 1, second},
		"a fence that did not grow":      {first, run(4*second, 5*second, 1, nil), 1, 0},
		"a death was seen late":          {killed, run(5*half, 5*second, 2, nil), 0, 0},
		"a death came late":              {killed, run(5*half, 5*second, 2, locked), 1, half},
	} {
		m := Runs([]Ran{c.next, c.first}, nil)
		if len(m.Overlaps) != c.overlaps || m.Overlap != c.overlap {
			t.Errorf("%s: %v %q", name, m, m.Overlaps)
		}
	}
	m := Runs([]Ran{killed, run(5*half, 5*second, 2, nil)}, nil)
	if m.Gap != 0 || m.GapLost != 0 || m.Loss != second {
		t.Errorf("%v", m)
	}
	ended := run(5*second, 6*second, 2, func(r *Ran) { r.Killed = true })
	m = Runs([]Ran{first, ended}, []Waited{{"x", 2 * second, 9 * second / 2}})
	if m.Gap != 2*second || m.GapLost != Never || m.Idle != 3*half || !slices.Equal(m.ForNothing, []string{"2"}) {
		t.Errorf("%v %v", m, m.ForNothing)
	}
}
