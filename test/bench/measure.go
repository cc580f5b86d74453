package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// table compares ways of doing one thing, in each of its shells. The first way is the one that the
// others are compared with.
type table struct {
	letter, title string
	unit          unit
	shells        []string
	heavy         bool // a round takes some seconds, so there are fewer rounds
	setup         func(*scene) (done func(), err error)
	before        func(*scene) error // before each run, untimed
	ways          []way
}

// way is one way to do it: a script that repeats it, or a function.
type way struct {
	name  string
	needs []string // tools
	shell string   // the one shell it is for; "": all of the table's
	goals []goal

	start  string // first part of the script, untimed
	cycle  string // the timed part; $i counts the cycles
	cycles int    // 0: as many as the bench has
	whole  bool   // the script is timed as a whole, from its start to its end

	once func(s *scene, shell string) (figure float64, note string, err error)
}

// goal is a limit: most times the way beside, or most units if beside is "".
type goal struct {
	most      float64
	bash      float64 // in bash; 0: the same
	elsewhere float64 // in shells other than dash and bash; 0: the same; unlimited: no goal
	beside    string  // the name of a way
}

// unlimited marks a shell without a goal.
const unlimited = -1

func (g goal) in(shell string) float64 {
	switch {
	case g.bash != 0 && shell == "bash":
		return g.bash
	case g.elsewhere != 0 && shell != "dash" && shell != "bash":
		return g.elsewhere
	}
	return g.most
}

// bench is the size of a measurement.
type bench struct {
	full       bool
	only       string
	rounds     int
	heavy      int // rounds of heavy tables
	cycles     int
	contenders int
	contended  time.Duration
	passes     []int // how many atoms each pass has; 24 and 32 are the paper's (table 1)
	atoms      int   // in the largest directory
}

var passes = []int{1, 24, 32, 320}

var (
	quick = bench{rounds: 5, heavy: 2, cycles: 20, contenders: 64, contended: 2 * time.Second, passes: passes, atoms: 100_000}
	full  = bench{full: true, rounds: 21, heavy: 7, cycles: 50, contenders: 64, contended: 10 * time.Second, passes: passes, atoms: 100_000}
)

// result is a table with its figures.
type result struct {
	table
	columns []column
	missing []string // tools and shells that are left out, with the reason
}

// column holds the figures of one shell.
type column struct {
	shell   string
	figures map[string]*figures // by way
}

// figures are those of one way, one each round.
type figures struct {
	values []float64
	note   string // of the last round
}

// missing stands for a figure that is not there.
const missing = -1

// measure measures all tables.
func (b bench) measure(s *scene) (results []result, err error) {
	for _, t := range b.tables() {
		if b.only != "" && !strings.Contains(b.only, t.letter) {
			continue
		}
		began, r := time.Now(), result{table: t}
		if err := b.fill(s, &r); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", t.letter, t.title, err)
		}
		fmt.Fprintf(os.Stderr, "%s: %s: %v\n", t.letter, t.title, time.Since(began).Round(time.Second))
		results = append(results, r)
	}
	return results, nil
}

func (b bench) fill(s *scene, r *result) error {
	if r.setup != nil {
		done, err := r.setup(s)
		if err != nil {
			return err
		}
		defer done()
	}
	for _, shell := range r.shells {
		if shell != "" && !s.has(strings.Fields(shell)[0]) {
			r.missing = append(r.missing, shell+" is not installed")
			continue
		}
		c := column{shell, map[string]*figures{}}
		if err := b.rounded(s, r, c); err != nil {
			return fmt.Errorf("%s: %w", shell, err)
		}
		r.columns = append(r.columns, c)
	}
	return nil
}

// rounded measures the ways in one shell. They take turns; in each round another way is first. If
// rounds are short, the first round is a warm-up and does not count.
func (b bench) rounded(s *scene, r *result, c column) error {
	ways := b.possible(s, r, c.shell)
	for _, w := range ways {
		c.figures[w.name] = &figures{}
	}
	begin, rounds := -1, b.rounds
	if r.heavy {
		begin, rounds = 0, b.heavy
	}
	for round := begin; round < rounds; round++ {
		for i := range ways {
			w := ways[(i+round+1)%len(ways)]
			if r.before != nil {
				if err := r.before(s); err != nil {
					return err
				}
			}
			value, note, err := w.once(s, c.shell)
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			if round >= 0 {
				f := c.figures[w.name]
				f.values, f.note = append(f.values, value), note
			}
		}
	}
	return nil
}

// possible lists the ways for which this machine has the tools, each with its function.
func (b bench) possible(s *scene, r *result, shell string) (ways []way) {
	for _, w := range r.ways {
		if w.shell != "" && w.shell != shell {
			continue
		}
		if missing := slices.IndexFunc(w.needs, func(tool string) bool { return !s.has(tool) }); missing >= 0 {
			r.leaveOut(w.name + ": " + w.needs[missing] + " is not installed")
			continue
		}
		if w.once == nil {
			if w.cycles == 0 || w.cycles > b.cycles && !w.whole {
				w.cycles = b.cycles
			}
			w.once = s.scripted(w, shell)
		}
		ways = append(ways, w)
	}
	return ways
}

func (r *result) leaveOut(why string) {
	if !slices.Contains(r.missing, why) {
		r.missing = append(r.missing, why)
	}
}

// spread is a median and the middle half.
type spread struct{ low, median, high float64 }

func spreadOf(values []float64) spread {
	v := slices.Sorted(slices.Values(values))
	at := func(share float64) float64 { return v[int(share*float64(len(v)-1)+0.5)] }
	return spread{at(0.25), at(0.5), at(0.75)}
}

// spread returns the spread of a way's figures; false if the way was not measured.
func (c column) spread(name string) (spread, bool) {
	f := c.figures[name]
	if f == nil || slices.Contains(f.values, missing) {
		return spread{}, false
	}
	return spreadOf(f.values), true
}

// beside returns the spread of the ratios name/other of each round; false if one of the two was
// not measured.
func (c column) beside(name, other string) (spread, bool) {
	_, found := c.spread(name)
	_, both := c.spread(other)
	if !found || !both {
		return spread{}, false
	}
	f, g := c.figures[name], c.figures[other]
	ratios := make([]float64, len(f.values))
	for i := range ratios {
		ratios[i] = f.values[i] / g.values[i]
	}
	return spreadOf(ratios), true
}

// reached reports whether a way has reached a goal; known is false if the way was not measured or
// has no goal in this shell.
func (c column) reached(name string, g goal) (yes, known bool) {
	figure, known := c.spread(name)
	if g.beside != "" {
		figure, known = c.beside(name, g.beside)
	}
	most := g.in(c.shell)
	return figure.median <= most, known && most != unlimited
}
