package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"adlock/lib/runlog"
)

const (
	library = `. "$LIBRARY" || exit 69`
	get     = `adlock_get get a 0 || exit; adlock_release`
	served  = "; for i in 1 2 3; do " + get + "; done" // an agent answers by the end
	denied  = `adlock_get %s a %s; [ "$?" = 75 ] || exit 1`
	bare    = "exec 9>FILE; flock -n 9"
	ran     = "flock -n FILE true"
)

// everywhere lists the shells that the library supports.
var everywhere = []string{"dash", "bash", "busybox ash", "mksh", "ksh93", "zsh --emulate sh", "yash"}

var common = []string{"dash", "bash"}

// shells are the shells of tables with a column for each shell: in the quick form two.
func (b bench) shells() []string {
	if b.full {
		return everywhere
	}
	return common
}

// tables lists all that is measured. The letters are for -only.
func (b bench) tables() []table {
	tables := []table{b.cycle(), b.zsystem(), b.ownPart(), b.run()}
	for _, atoms := range b.passes {
		tables = append(tables, b.pass(atoms))
	}
	tables = append(tables, b.denials(), b.handOver(), b.contention())
	for _, verb := range []way{
		{name: "get and release", start: library, cycle: get},
		{name: "adlock status", cycle: `"$ADLOCK_BIN" status >/dev/null || exit`, cycles: 1},
		{name: "adlock report", cycle: `"$ADLOCK_BIN" report >/dev/null || exit`, cycles: 1},
	} {
		tables = append(tables, b.directories(verb))
	}
	return append(tables, b.memory())
}

// pair is a way to take a lock and to release it.
func pair(name, cycle string, tools ...string) way {
	return way{name: name, cycle: cycle + " || exit", needs: tools}
}

func (b bench) cycle() table {
	return table{letter: "a", title: "get and release", unit: duration, shells: b.shells(), ways: []way{
		pair(bare, "bare free", "flock"),
		{name: "adlock_get, adlock_release", start: library, cycle: get},
		{name: "the same, with adlock_agent", start: library + "\nadlock_agent" + served, cycle: get},
		pair("two starts of an empty program in Go", "GOMAXPROCS=1 ./empty && GOMAXPROCS=1 ./empty"),
		pair("mkdir, rmdir", "mkdir made && rmdir made"),
		pair("dotlockfile -l, -u", "dotlockfile -p -r 0 -l dot && dotlockfile -u dot", "dotlockfile"),
		pair("lockfile, rm", "lockfile -r 0 procmail && rm -f procmail", "lockfile"),
	}}
}

// zsystem has a table of its own, because only zsh has it.
func (b bench) zsystem() table {
	w := pair("zsystem flock -f fd, -u", `zsystem flock -t 0 -f fd zsystem && zsystem flock -u "$fd"`)
	w.start = "zmodload zsh/system; : >zsystem"
	return table{letter: "a", title: "get and release in zsh", unit: duration, shells: []string{"zsh --emulate sh"}, ways: []way{
		pair(bare, "bare free", "flock"), {name: "adlock_get, adlock_release", start: library, cycle: get}, w,
	}}
}

// ownPart measures a cycle in which a function of the shell takes the place of the helper, and
// writes and replaces the lock.
func (b bench) ownPart() table {
	const stub = `
stub() {
	case $1 in
	take) echo "$3
token=one
" >|"$ADLOCK_DIR/lock.script.bench.stub.a" ;;
	release) : >|"$ADLOCK_DIR/lock.script.bench.stub.a" ;;
	esac
}
ADLOCK_BIN=stub
`
	return table{letter: "a", title: "the library's own part", unit: duration, shells: b.shells(), ways: []way{
		{
			name: "get and release with a function for a helper", start: library + stub,
			cycle: "adlock_get stub a 0 || exit; adlock_release || exit", goals: []goal{{most: 100, bash: 200, elsewhere: unlimited}},
		},
	}}
}

// run measures a job under a lock, also with the limits of a typical crontab line: at most once in
// 15 minutes, one at a time, ended after 90 minutes.
func (b bench) run() table {
	const due = `adlock run --name "w$i" --if-elapsed 15m --expire-after 90m --enforce true`
	same := pair("find -mmin, flock -n, timeout -k, touch",
		`[ -n "$(find "stamp.$i" -mmin +15)" ] && flock -n work timeout -k 9 90m true && touch "stamp.$i"`, "find", "flock", "timeout")
	sem := pair("sem --fg true", "sem --will-cite --fg --id bench true", "sem")
	sem.cycles = 2
	return table{
		letter: "b", title: "a job under a lock", unit: duration, shells: common, before: b.age,
		ways: []way{
			pair(ran, "flock -n free true", "flock"),
			{name: "adlock run true", cycle: `"$ADLOCK_BIN" run true || exit`, goals: []goal{{most: 1.7, beside: ran}, {most: 1, beside: same.name}}},
			{name: due, cycle: `"$ADLOCK_BIN"` + due[len("adlock"):] + " || exit", goals: []goal{{most: 1, beside: same.name}}},
			same,
			pair("a program in Go that only starts true", "./start"),
			pair("timeout 10 true", "timeout 10 true", "timeout"),
			pair("setlock -n FILE true", "setlock -n free true", "setlock"),
			sem,
		},
	}
}

// age makes each cycle's atom an hour older.
func (b bench) age(s *scene) (err error) {
	ago := time.Now().Add(-time.Hour)
	for i := 1; i <= b.cycles && err == nil; i++ {
		err = s.stamp(filepath.Join(s.dir, fmt.Sprint("stamp.", i)), ago)
		if last := filepath.Join(s.dir, fmt.Sprint("locks/last.adlock.bench.run.w", i)); err == nil {
			err = s.stamp(last, ago)
		}
	}
	return err
}

// pass is a script of that many atoms, the start of its shell included.
func (b bench) pass(atoms int) table {
	whole := func(name, start, cycle string, goals ...goal) way {
		return way{name: name, start: start, cycle: cycle, cycles: atoms, whole: true, goals: goals}
	}
	const (
		ask  = `adlock_get get "p$i" 0 || exit; adlock_release`
		lone = "without adlock_pass"
	)
	flock := whole(bare, "", `bare "p$i" || exit`)
	flock.needs = []string{"flock"}
	t := table{letter: "c", title: fmt.Sprintf("a pass of %d", atoms), unit: duration, shells: b.shells(), heavy: atoms > 100}
	var goals []goal
	switch {
	case atoms == 1:
		goals = []goal{{most: 1.2, beside: lone}}
	case atoms >= 320:
		goals = []goal{{most: 0.3, elsewhere: 1, beside: bare}}
	case atoms >= 32:
		goals = []goal{{most: 0.45, elsewhere: 1, beside: bare}}
	}
	t.ways = []way{
		flock,
		whole("adlock_pass", library+"\nadlock_pass", ask, goals...),
		whole("adlock_pass, ADLOCK_AGENT=0", library+"\nADLOCK_AGENT=0\nadlock_pass", ask),
		whole(lone, library, ask),
		whole("no locks", "", ":"),
	}
	return t
}

// denials measures a get that is denied as busy or too soon.
func (b bench) denials() table {
	busy, soon := fmt.Sprintf(denied, "busy", "0"), fmt.Sprintf(denied, "soon", "60")
	const pass = library + "\nadlock_pass" + served
	inPass := []goal{{most: 0.3, beside: "exec 9>FILE; flock -n 9, held"}}
	return table{letter: "d", title: "denials", unit: duration, shells: b.shells(), setup: b.occupied, ways: []way{
		pair("exec 9>FILE; flock -n 9, held", "! bare held", "flock"),
		{name: "adlock_get, busy", start: library, cycle: busy},
		{name: "adlock_get, too soon", start: library, cycle: soon},
		{name: "busy in a pass", start: pass, cycle: busy, goals: inPass},
		{name: "too soon in a pass", start: pass, cycle: soon, goals: inPass},
		pair("mkdir, made", "! mkdir occupied 2>/dev/null"),
		pair("dotlockfile -l, held", "! dotlockfile -p -r 0 -l occupied", "dotlockfile"),
		pair("lockfile, held", "! lockfile -r 0 occupied 2>/dev/null", "lockfile"),
	}}
}

// occupied holds the atoms that the denied scripts ask for.
func (b bench) occupied(s *scene) (done func(), err error) {
	if err := s.last(filepath.Join(s.dir, "locks"), "soon", "a", time.Now()); err != nil {
		return nil, err
	}
	if err := os.Mkdir(filepath.Join(s.dir, "occupied"), 0o700); err != nil {
		return nil, err
	}
	open, err := s.holdFile("held")
	if err != nil {
		return nil, err
	}
	release, err := s.holdAtom("script", "busy", "a")
	if err != nil {
		open()
		return nil, err
	}
	return func() { open(); release(); os.Remove(filepath.Join(s.dir, "occupied")) }, nil
}

// directories compares a lock directory that has one atom with larger ones.
func (b bench) directories(verb way) table {
	t := table{letter: "g", title: verb.name + " in a directory", unit: duration, shells: []string{"dash"}, heavy: true}
	counts := slices.Compact([]int{1, min(1_000, b.atoms), b.atoms})
	for _, atoms := range counts {
		w := verb
		w.name = fmt.Sprintf("of %d", atoms)
		w.start = fmt.Sprintf("ADLOCK_DIR=$PWD/atoms.%d\nexport ADLOCK_DIR\n%s", atoms, verb.start)
		if atoms > 1 && verb.cycles != 1 {
			w.goals = []goal{{most: 1.1, beside: "of 1"}}
		}
		t.ways = append(t.ways, w)
	}
	t.setup = func(s *scene) (func(), error) { return func() {}, s.populate(counts) }
	return t
}

// populate fills the directories: each atom has a last lock and a run in the runlog.
func (s *scene) populate(counts []int) error {
	for _, atoms := range counts {
		dir := filepath.Join(s.dir, fmt.Sprint("atoms.", atoms))
		if err := os.Mkdir(dir, 0o700); os.IsExist(err) {
			continue
		} else if err != nil {
			return err
		}
		for i := range atoms {
			if err := s.last(dir, "get", fmt.Sprint("a", i), time.Now().Add(-time.Hour)); err != nil {
				return err
			}
		}
		if err := record(dir, atoms); err != nil {
			return err
		}
	}
	return nil
}

// record writes a run of each atom into a runlog, up to the size that is kept.
func record(dir string, atoms int) error {
	log := runlog.Log{Dir: dir, Host: "bench"}
	for i := max(0, atoms-50_000); i < atoms; i++ {
		e := runlog.Event{Kind: runlog.Acquire, Program: "script", Host: "bench", Operator: "get", Operand: fmt.Sprint("a", i), PID: 1, Token: fmt.Sprintf("%032x", i)}
		if err := log.Append(e); err != nil {
			return err
		}
		e.Kind, e.Status, e.Duration = runlog.Release, runlog.Some(0), runlog.Some(time.Second)
		if err := log.Append(e); err != nil {
			return err
		}
	}
	return nil
}
