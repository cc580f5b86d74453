package protocol

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"adlock/test/support/helper"
	"adlock/test/support/need"
)

// families are the atoms: that many of each kind, named by a letter and a number.
var families = map[string]int{
	"a": 8, // one at a time
	"r": 2, // readers and writers
	"s": 5, // at most slotsOfS run at once
	"w": 1, // inside others
	"g": 2, // scripts that guard themselves
	"t": 1, // taken in a trap
}

const slotsOfS = 2

func stormAtoms() []string {
	var all []string
	for family, n := range families {
		for i := range n {
			all = append(all, family+strconv.Itoa(i))
		}
	}
	return all
}

// seconds is a duration as the helper takes it.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s" }

// stormPause is the time between the signals of an ending.
func stormPause() string { return seconds(200 * time.Millisecond) }

// stormContender is one process that the stage starts, with all that it starts.
type stormContender struct {
	id    string
	args  []string
	env   []string
	attr  syscall.SysProcAttr
	calls map[string]stormTerms // the attempts to announce before it starts
	run   bool                  // its status is that of the attempt with its id
	name  string                // of its first process, when the storm last looked

	// What the storm may end: the first process (mortal; by KILL only if killable), the command of
	// a run (command), all others (rest). It may stop any process.
	mortal, killable, command, rest bool
	trapped                         bool // USR1 makes it use the library
	subshell                        bool // its job is one, whose child would outlive it
}

// troupe makes contenders at random.
type troupe struct {
	*rand.Rand
	s      *stormStage
	name   string
	n      int
	group  int // of a bystander, for contenders that lead none
	shells [][]string
}

// often draws mostly the first of the choices, and sometimes another.
func (t *troupe) often(choices ...string) string {
	if t.IntN(3) > 0 {
		return choices[0]
	}
	return choices[t.IntN(len(choices))]
}

func (t *troupe) shell() []string {
	if t.IntN(3) > 0 {
		return t.shells[0]
	}
	return t.shells[t.IntN(len(t.shells))]
}

func (t *troupe) atom(family string) string { return family + strconv.Itoa(t.IntN(families[family])) }

// next draws a contender.
func (t *troupe) next() *stormContender {
	t.n++
	c := &stormContender{id: fmt.Sprintf("%s%d", t.name, t.n), calls: map[string]stormTerms{}, env: t.env()}
	switch n := t.IntN(100); {
	case n < 34:
		t.alone(c, "a")
	case n < 42:
		t.alone(c, "r")
	case n < 50:
		t.alone(c, "s")
	case n < 60:
		t.family(c)
	case n < 66:
		t.wholeJob(c)
	case n < 72:
		t.leaver(c)
	case n < 75:
		t.pair(c)
	case n < 79:
		t.guard(c)
	case n < 90:
		t.follower(c)
	default:
		t.leader(c)
	}
	return c
}

func (t *troupe) env() []string {
	return append(need.Clean(),
		"ADLOCK_DIR="+t.s.locks, "ADLOCK_BIN="+t.s.binary, "ADLOCK_HOST=dax", "ADLOCK_LOG_MAX=1000000000",
		"ADLOCK_SH="+filepath.Join(helper.Root(), "sh", "adlock.sh"),
		"STORM="+t.s.dir, "STORM_SCRIPT="+script, "STORM_SHELL=sh",
		"STORM_PAUSE="+stormPause())
}

var script = filepath.Join(helper.Root(), "test/protocol/storm.sh")

// terms draws the terms of a run.
func (t *troupe) terms(family string) stormTerms {
	w := stormTerms{atom: t.atom(family), limit: -time.Second, denied: denied}
	if t.IntN(10) == 0 {
		w.elapsed = time.Duration(40+t.IntN(400)) * time.Millisecond
		w.unstamps = t.IntN(3) == 0
	}
	switch n := t.IntN(16); {
	case n == 0:
		w.limit = 0
	case n < 5:
		w.limit = time.Duration(100+t.IntN(900)) * time.Millisecond
		w.enforce = t.IntN(3) == 0
	}
	if t.IntN(4) == 0 {
		w.wait = time.Duration(20+t.IntN(300)) * time.Millisecond
	}
	if t.IntN(8) == 0 {
		w.denied = 99
	}
	switch t.IntN(12) {
	case 0:
		w.code = 3
	case 1:
		w.code = denied
	}
	switch family {
	case "r":
		w.shared = t.IntN(4) > 0
	case "s":
		w.slots = slotsOfS
	}
	return w
}

// run is the command line of an `adlock run`, up to the job.
func (t *troupe) run(w stormTerms, more ...string) []string {
	program := "p"
	if w.slots > 0 {
		program = "q"
	}
	args := []string{t.s.binary, "run", "--program=" + program, "--host=dax", "--operator=o", "--operand=" + w.atom, "--pause=" + stormPause()}
	for _, option := range []struct {
		given bool
		text  string
	}{
		{w.elapsed > 0, "--if-elapsed=" + seconds(w.elapsed)}, {w.limit >= 0, "--expire-after=" + seconds(w.limit)},
		{w.wait > 0, "--wait=" + seconds(w.wait)}, {w.denied != denied, fmt.Sprint("--exit-denied=", w.denied)},
		{w.enforce, "--enforce"}, {w.unstamps, "--retry-failed"}, {w.shared, "--shared"},
		{w.slots > 0, fmt.Sprint("--slots=", w.slots)},
	} {
		if option.given {
			args = append(args, option.text)
		}
	}
	return append(append(args, more...), "--")
}

// job is the command line of the job.
func (t *troupe) job(id string, w stormTerms, body string) []string {
	mode := "x"
	if w.shared {
		mode = "s"
	}
	return append(t.shell(), script, "job", id, w.atom, mode, body, strconv.Itoa(w.code))
}

// supervised makes c an `adlock run`.
func (t *troupe) supervised(c *stormContender, w stormTerms, args ...[]string) {
	for _, part := range args {
		c.args = append(c.args, part...)
	}
	c.run, c.calls[c.id] = true, w
	if t.IntN(2) == 0 {
		c.attr.Setsid = true
	} else {
		c.attr.Setpgid, c.attr.Pgid = true, t.group
	}
}

// body draws the work of a job that is one process.
func (t *troupe) body() string {
	switch n := t.IntN(300); {
	case n == 0:
		return "i"
	case n < 3:
		return "h"
	case n < 60:
		return "p"
	}
	return "q"
}

// alone is a run whose command is the only process of its job: its death leaves no process that runs unlocked.
func (t *troupe) alone(c *stormContender, family string) {
	w := t.terms(family)
	t.supervised(c, w, t.run(w), t.job(c.id, w, t.body()))
	c.mortal, c.killable, c.command = true, true, true
}

// family is a run whose command has children. Unless a newcomer ends the job, the promise covers
// them only until the command ends, so the storm ends no such command. A child that has left the
// group is covered as long as the supervisor lives.
func (t *troupe) family(c *stormContender) {
	w := t.terms("a")
	body := t.often("f", "b", "g", "t", "s", "n", "N", "w", "j")
	t.supervised(c, w, t.run(w), t.job(c.id, w, body))
	c.mortal = true
	c.killable = strings.Contains("fbgnNwj", body)
	c.rest = strings.Contains("fbs", body)
}

// wholeJob is a run that holds its atom until all processes of its command are gone, so the command may be ended too.
// A process that left the group is covered as long as the supervisor lives.
func (t *troupe) wholeJob(c *stormContender) {
	w := t.terms("a")
	body := t.often("o", "f", "b", "g", "t", "s", "d", "N")
	t.supervised(c, w, t.run(w, "--whole-job"), t.job(c.id, w, body))
	c.mortal, c.command, c.rest = true, true, true
	c.killable = strings.Contains("ofbg", body)
}

// leaver is a run whose command leaves the supervisor's group, after the lock names it: KILL of the supervisor before
// that is the hole that adlock(7) names. A command that runs the job as its child (timeout) may not be ended.
func (t *troupe) leaver(c *stormContender) {
	w := t.terms("a")
	leave := append(t.shell(), script, "leave", c.id, w.atom)
	if t.IntN(2) == 0 {
		t.supervised(c, w, t.run(w), leave, []string{"setsid"}, t.job(c.id, w, t.body()))
		c.command, c.killable = true, true
	} else {
		t.supervised(c, w, t.run(w), leave, []string{"timeout", "20"}, t.job(c.id, w, t.body()))
		c.rest, c.killable = true, true
	}
	c.mortal = true
}

// pair is a run whose command is a run: the same job holds both atoms. The inner supervisor
// holds the outer atom after the outer supervisor's death, so it is not ended.
func (t *troupe) pair(c *stormContender) {
	outer, inner := t.terms("a"), t.terms("w")
	outer.code, inner.code, inner.denied = 0, 0, outer.denied
	leave := append(t.shell(), script, "leave", c.id, outer.atom)
	t.supervised(c, outer, t.run(outer), leave, t.run(inner), t.shell(), []string{script, "pair", c.id, outer.atom, inner.atom})
	c.calls[c.id+".w"] = inner
	c.mortal, c.killable = true, true
}

// guard is a script that guards itself, alone in its job.
func (t *troupe) guard(c *stormContender) {
	w := stormTerms{atom: t.atom("g"), limit: -1}
	limit := "never"
	if t.IntN(4) == 0 {
		w.limit = time.Duration(200+t.IntN(800)) * time.Millisecond
		limit = seconds(w.limit)
	}
	t.supervised(c, w, t.shell(), []string{filepath.Join(t.s.dir, w.atom+".sh"), c.id})
	c.env = append(c.env, "STORM_LIMIT="+limit, "ADLOCK_PAUSE="+stormPause())
	c.mortal, c.killable, c.command = true, true, true
}

// scripted makes c a script that uses the library some times.
func (t *troupe) scripted(c *stormContender, bodies string) {
	atoms, mode, slots, program := fmt.Sprint("a", families["a"]), "x", 0, "p"
	kind := t.IntN(6)
	if bodies == "u" && kind == 1 {
		kind = 2 // the traps' atom is of the program p
	}
	switch kind {
	case 0:
		atoms, mode = fmt.Sprint("r", families["r"]), t.often("s", "x")
		if mode == "s" {
			c.env = append(c.env, "ADLOCK_SHARED=1")
		}
	case 1:
		atoms, slots, program = fmt.Sprint("s", families["s"]), slotsOfS, "q"
		c.env = append(c.env, fmt.Sprintf("ADLOCK_SLOTS=%d", slots))
		if t.IntN(4) == 0 {
			bodies = "k"
		}
	}
	c.env = append(c.env, "ADLOCK_PROGRAM="+program, "ADLOCK_PAUSE="+stormPause())
	if t.IntN(3) == 0 {
		c.env = append(c.env, "ADLOCK_WAIT=1s")
	}
	if t.IntN(4) == 0 {
		c.env = append(c.env, "STORM_PASS=1")
	}
	if strings.Contains("nNwx", bodies) && slots > 0 {
		bodies = "f"
	}
	c.args = append(t.shell(), script, "script", c.id, strconv.Itoa(t.IntN(65537)), strconv.Itoa(5+t.IntN(60)),
		atoms, mode, strconv.Itoa(slots), bodies)
}

// follower is a script that leads no group, like one of run-parts: if it is ended, its children hold the
// atom by its mark.
func (t *troupe) follower(c *stormContender) {
	body := t.often("f", "p", "b", "g", "z")
	t.scripted(c, body)
	c.subshell = body == "z"
	c.attr.Setpgid, c.attr.Pgid = true, t.group
	c.mortal, c.killable = true, true
}

// leader is a script that leads its group and session: its children that stay in the session
// hold the atom. A child that leaves it (s) is covered as long as the script lives.
func (t *troupe) leader(c *stormContender) {
	body := t.often("f", "b", "g", "t", "s", "n", "N", "w", "x", "j")
	if t.IntN(3) == 0 {
		body, c.trapped = "u", true
	}
	t.scripted(c, body)
	c.attr.Setsid = true
	c.mortal, c.killable = body != "s", body != "s"
	c.rest = strings.Contains("fbskx", body)
}
