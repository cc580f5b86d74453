//go:build soak

package network

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"
)

// ran is one run of a job, as the job reported it. Times are boottimes.
type ran struct {
	id, atom   string
	begin, end time.Duration
	killed     bool // end is when its death was seen
	alone      bool // no other process held the atom's file when it began
	fence      uint64

	attacked bool          // by the chaos itself, or cut off from its store
	excused  bool          // the servers, or this machine, were too slow even for a client that was not attacked
	lost     time.Duration // when it lost its store or its locksmith; 0: never
}

// waited is the time that a contender waited for an atom.
type waited struct {
	atom     string
	from, to time.Duration
}

// margins are the judge's findings.
type margins struct {
	runs, killed int
	overlaps     []string
	overlap      time.Duration // the longest
	forNothing   []string      // ended though a majority was healthy
	excused      int           // ended while the servers did not answer the chaos either
	gap          time.Duration // the least between an end and the next beginning
	gapLost      time.Duration // the least gap after a run that was ended because it lost its store
	idle         time.Duration // the longest without a run while a contender waited
	loss         time.Duration // the longest from the loss of the store to the job's end
}

const never = time.Duration(1<<63 - 1)

// judgeRuns judges all runs.
func judgeRuns(runs []ran, waits []waited) margins {
	m := margins{gap: never, gapLost: never}
	of := map[string][]ran{}
	for _, r := range runs {
		of[r.atom] = append(of[r.atom], r)
		m.runs++
		if !r.killed {
			continue
		}
		m.killed++
		switch {
		case r.lost > 0:
			m.loss = max(m.loss, r.end-r.lost)
		case r.excused && !r.attacked:
			m.excused++
		case !r.attacked:
			m.forNothing = append(m.forNothing, r.id)
		}
	}
	for _, w := range waits {
		if of[w.atom] == nil {
			of[w.atom] = []ran{} // no job has run
		}
	}
	for atom, all := range of {
		slices.SortFunc(all, func(a, b ran) int { return cmp.Compare(a.begin, b.begin) })
		m.judgeAtom(all)
		m.judgeIdle(all, waits, atom)
	}
	slices.Sort(m.overlaps)
	return m
}

// judgeAtom judges the runs of one atom, in the order of their beginnings.
func (m *margins) judgeAtom(all []ran) {
	for i, b := range all {
		clash := !b.alone
		for _, a := range all[:i] {
			end := a.end
			if a.killed && b.alone {
				// A death is seen a moment late, but b certainly found the file unlocked.
				end = min(end, b.begin)
			}
			if over := min(end, b.end) - b.begin; over > 0 {
				m.overlap = max(m.overlap, over)
				m.overlaps = append(m.overlaps, fmt.Sprintf("%s: %s began at %v, %v before the end of %s", b.atom, b.id, b.begin, end-b.begin, a.id))
				clash = false // is reported already
			}
			if a.fence >= b.fence {
				m.overlaps = append(m.overlaps, fmt.Sprintf("%s: %s began at %v with fence %d, after %s with %d", b.atom, b.id, b.begin, b.fence, a.id, a.fence))
			}
		}
		if clash {
			m.overlaps = append(m.overlaps, fmt.Sprintf("%s: %s began at %v, while another held the file", b.atom, b.id, b.begin))
		}
		if i > 0 {
			m.judgeGap(all[i-1], b)
		}
	}
}

func (m *margins) judgeGap(a, b ran) {
	gap := b.begin - a.end
	if a.killed && b.alone {
		gap = max(gap, 0)
	}
	m.gap = min(m.gap, gap)
	if a.killed && a.lost > 0 {
		m.gapLost = min(m.gapLost, gap)
	}
}

// judgeIdle looks for the longest time between two runs in which a contender waited.
func (m *margins) judgeIdle(all []ran, waits []waited, atom string) {
	var busyUntil time.Duration
	for _, next := range append(slices.Clone(all), ran{begin: never}) {
		for _, w := range waits {
			if w.atom == atom {
				m.idle = max(m.idle, min(w.to, next.begin)-max(w.from, busyUntil))
			}
		}
		busyUntil = max(busyUntil, next.end)
	}
}

func (m margins) String() string {
	return fmt.Sprintf("%d runs, %d overlaps; overlap %s; gap %s; gap after a loss %s; idle %s; loss to end %s",
		m.runs, len(m.overlaps), shown(m.overlap), shown(m.gap), shown(m.gapLost), shown(m.idle), shown(m.loss)) +
		fmt.Sprintf("; %d ended by force, %d for nothing, %d excused", m.killed, len(m.forNothing), m.excused)
}

func shown(d time.Duration) string {
	if d == never {
		return "-"
	}
	if d.Abs() < second {
		return fmt.Sprint(d.Milliseconds(), " ms")
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// with combines the margins of two plays. No play means no runs.
func (m margins) with(n margins) margins {
	if m.runs == 0 {
		return n
	}
	return margins{
		m.runs + n.runs, m.killed + n.killed, append(m.overlaps, n.overlaps...), max(m.overlap, n.overlap), append(m.forNothing, n.forNothing...), m.excused + n.excused,
		min(m.gap, n.gap), min(m.gapLost, n.gapLost), max(m.idle, n.idle), max(m.loss, n.loss),
	}
}

const second = time.Second

func TestTheJudgeOfTheChaosFindsWhatIsWrong(t *testing.T) {
	const half = second / 2
	run := func(begin, end time.Duration, fence uint64, change func(*ran)) ran {
		r := ran{id: fmt.Sprint(fence), atom: "x", begin: begin, end: end, alone: true, fence: fence}
		if change != nil {
			change(&r)
		}
		return r
	}
	locked := func(r *ran) { r.alone = false }
	first := run(second, 3*second, 1, nil)
	killed := run(second, 3*second, 1, func(r *ran) { r.killed, r.lost = true, 2*second }) // its death may be seen late
	for name, c := range map[string]struct {
		first, next ran
		overlaps    int
		overlap     time.Duration
	}{
		"one after the other":            {first, run(4*second, 5*second, 2, nil), 0, 0},
		"two at once":                    {first, run(2*second, 5*second, 2, nil), 1, second},
		"one within the other":           {first, run(2*second, 5*half, 2, nil), 1, half},
		"two atoms":                      {first, run(2*second, 5*second, 2, func(r *ran) { r.atom = "y" }), 0, 0},
		"the file was locked":            {first, run(4*second, 5*second, 2, locked), 1, 0},
		"two at once, and a locked file": {first, run(2*second, 5*second, 2, locked), 1, second},
		"a fence that did not grow":      {first, run(4*second, 5*second, 1, nil), 1, 0},
		"a death was seen late":          {killed, run(5*half, 5*second, 2, nil), 0, 0},
		"a death came late":              {killed, run(5*half, 5*second, 2, locked), 1, half},
	} {
		m := judgeRuns([]ran{c.next, c.first}, nil)
		if len(m.overlaps) != c.overlaps || m.overlap != c.overlap {
			t.Errorf("%s: %v %q", name, m, m.overlaps)
		}
	}
	m := judgeRuns([]ran{killed, run(5*half, 5*second, 2, nil)}, nil)
	if m.gap != 0 || m.gapLost != 0 || m.loss != second {
		t.Errorf("%v", m)
	}
}

func TestTheJudgeOfTheChaosMeasuresGapsAndIdleTime(t *testing.T) {
	runs := []ran{
		{id: "a", atom: "x", begin: 1 * second, end: 3 * second, alone: true, fence: 1},
		{id: "b", atom: "x", begin: 5 * second, end: 6 * second, killed: true, alone: true, fence: 2},
		{id: "c", atom: "x", begin: 9 * second, end: 10 * second, killed: true, attacked: true, alone: true, fence: 3},
	}
	waits := []waited{
		{"x", 4 * second, 5 * second}, {"x", 2 * second, 9 * second / 2}, {"y", 0, 7 * second}, {"x", 8 * second, 20 * second},
	}
	m := judgeRuns(runs, waits)
	if m.gap != 2*second || m.gapLost != never || m.idle != 10*second || m.killed != 2 || !slices.Equal(m.forNothing, []string{"b"}) {
		t.Errorf("%v %v", m, m.forNothing)
	}
}
