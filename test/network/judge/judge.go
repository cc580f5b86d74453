// Package judge checks what the jobs of the chaos report: a pure function of their runs.
package judge

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Ran is one run of a job, as the job reported it. Times are boottimes.
type Ran struct {
	ID, Atom   string
	Begin, End time.Duration
	Killed     bool // end is when its death was seen
	Alone      bool // no other process held the atom's file when it began
	Fence      uint64

	Attacked bool          // by the chaos itself, or cut off from its store
	Excused  bool          // the servers, or this machine, were too slow even for a client that was not attacked
	Lost     time.Duration // when it lost its store or its locksmith; 0: never
}

// Waited is the time that a contender waited for an atom.
type Waited struct {
	Atom     string
	From, To time.Duration
}

// Margins are the judge's findings.
type Margins struct {
	Runs, Killed int
	Overlaps     []string
	Overlap      time.Duration // the longest
	ForNothing   []string      // ended though a majority was healthy
	Excused      int           // ended while the servers did not answer the chaos either
	Gap          time.Duration // the least between an end and the next beginning
	GapLost      time.Duration // the least gap after a run that was ended because it lost its store
	Idle         time.Duration // the longest without a run while a contender waited
	Loss         time.Duration // the longest from the loss of the store to the job's end
}

// Never is the time of what did not happen.
const Never = time.Duration(1<<63 - 1)

// Runs judges all runs.
func Runs(runs []Ran, waits []Waited) Margins {
	m := Margins{Gap: Never, GapLost: Never}
	of := map[string][]Ran{}
	for _, r := range runs {
		of[r.Atom] = append(of[r.Atom], r)
		m.Runs++
		if !r.Killed {
			continue
		}
		m.Killed++
		switch {
		case r.Lost > 0:
			m.Loss = max(m.Loss, r.End-r.Lost)
		case r.Excused && !r.Attacked:
			m.Excused++
		case !r.Attacked:
			m.ForNothing = append(m.ForNothing, r.ID)
		}
	}
	for _, w := range waits {
		if of[w.Atom] == nil {
			of[w.Atom] = []Ran{} // no job has run
		}
	}
	for atom, all := range of {
		slices.SortFunc(all, func(a, b Ran) int { return cmp.Compare(a.Begin, b.Begin) })
		m.judgeAtom(all)
		m.judgeIdle(all, waits, atom)
	}
	slices.Sort(m.Overlaps)
	return m
}

// judgeAtom judges the runs of one atom, in the order of their beginnings.
func (m *Margins) judgeAtom(all []Ran) {
	for i, b := range all {
		clash := !b.Alone
		for _, a := range all[:i] {
			end := a.End
			if a.Killed && b.Alone {
				// A death is seen a moment late, but b certainly found the file unlocked.
				end = min(end, b.Begin)
			}
			if over := min(end, b.End) - b.Begin; over > 0 {
				m.Overlap = max(m.Overlap, over)
				m.Overlaps = append(m.Overlaps, fmt.Sprintf("%s: %s began at %v, %v before the end of %s", b.Atom, b.ID, b.Begin, end-b.Begin, a.ID))
				clash = false // is reported already
			}
			if a.Fence >= b.Fence {
				m.Overlaps = append(m.Overlaps, fmt.Sprintf("%s: %s began at %v with fence %d, after %s with %d", b.Atom, b.ID, b.Begin, b.Fence, a.ID, a.Fence))
			}
		}
		if clash {
			m.Overlaps = append(m.Overlaps, fmt.Sprintf("%s: %s began at %v, while another held the file", b.Atom, b.ID, b.Begin))
		}
		if i > 0 {
			m.judgeGap(all[i-1], b)
		}
	}
}

func (m *Margins) judgeGap(a, b Ran) {
	gap := b.Begin - a.End
	if a.Killed && b.Alone {
		gap = max(gap, 0)
	}
	m.Gap = min(m.Gap, gap)
	if a.Killed && a.Lost > 0 {
		m.GapLost = min(m.GapLost, gap)
	}
}

// judgeIdle looks for the longest time between two runs in which a contender waited.
func (m *Margins) judgeIdle(all []Ran, waits []Waited, atom string) {
	var busyUntil time.Duration
	for _, next := range append(slices.Clone(all), Ran{Begin: Never}) {
		for _, w := range waits {
			if w.Atom == atom {
				m.Idle = max(m.Idle, min(w.To, next.Begin)-max(w.From, busyUntil))
			}
		}
		busyUntil = max(busyUntil, next.End)
	}
}

func (m Margins) String() string {
	return fmt.Sprintf("%d runs, %d overlaps; overlap %s; gap %s; gap after a loss %s; idle %s; loss to end %s",
		m.Runs, len(m.Overlaps), Shown(m.Overlap), Shown(m.Gap), Shown(m.GapLost), Shown(m.Idle), Shown(m.Loss)) +
		fmt.Sprintf("; %d ended by force, %d for nothing, %d excused", m.Killed, len(m.ForNothing), m.Excused)
}

// Shown formats a time as the tables have it.
func Shown(d time.Duration) string {
	if d == Never {
		return "-"
	}
	if d.Abs() < time.Second {
		return fmt.Sprint(d.Milliseconds(), " ms")
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// With combines the margins of two plays. An m without runs stands for no play.
func (m Margins) With(n Margins) Margins {
	if m.Runs == 0 {
		return n
	}
	return Margins{
		m.Runs + n.Runs, m.Killed + n.Killed, append(m.Overlaps, n.Overlaps...), max(m.Overlap, n.Overlap), append(m.ForNothing, n.ForNothing...), m.Excused + n.Excused,
		min(m.Gap, n.Gap), min(m.GapLost, n.GapLost), max(m.Idle, n.Idle), max(m.Loss, n.Loss),
	}
}
