package protocol

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"
)

// The statuses that adlock-run(1) promises.
const (
	denied   = 75
	stuck    = 77
	enforced = 124
)

// coarse is the most that two compared clocks differ: a shell's counts in 10 ms, and a file system's in up to as much.
const coarse = 25 * time.Millisecond

// lagging is how long a signal may be under way: the test notes it before it sends it.
const lagging = 2 * time.Second

type violation struct {
	promise string
	at      int // the index of the event that shows it
	atom    string
	ids     []string
}

// stormAttempt has the events of one attempt at an atom, as indices into the history; none if there is no such event.
type stormAttempt struct {
	stormTerms
	id                             string
	call, in, out, got, given, end int
	unnamed                        int // where its command has waited in vain for the lock to name it
	owns                           int // where the lock named it though its verdict was a denial
	status                         int // at its end; the first of adlock_get, adlock_with or adlock_release that is not 0
	code                           int // the job's own status at its end
	until                          int // it certainly holds nothing after that
	verdict                        string
}

const none = -1

// trial is a history that is being judged.
type trial struct {
	events   []stormEvent
	attempts []*stormAttempt // in the order of their calls
	byID     map[string]*stormAttempt
	byRoot   map[string][]*stormAttempt
	byAtom   map[string][]*stormAttempt
	sigs     map[string][]int // by contender: where it got a fatal signal
	ends     map[string]int   // by contender: where the stage noted its end
	found    []violation
	// contenders that may take a signal for a status, and bystanders that a process outside the stage has signalled
	misread, outside map[string]bool
}

// judge returns the promises that a history breaks.
func judge(events []stormEvent) []violation {
	t := &trial{
		events: events, byID: map[string]*stormAttempt{}, byRoot: map[string][]*stormAttempt{},
		byAtom: map[string][]*stormAttempt{}, sigs: map[string][]int{}, ends: map[string]int{}, misread: map[string]bool{}, outside: map[string]bool{},
	}
	for i, e := range events {
		t.read(i, e)
	}
	t.exclusion()
	t.slots()
	t.intervals()
	t.denials()
	for _, a := range t.attempts {
		if a.end != none {
			t.status(a)
		}
		if a.unnamed != none && !t.excused(a, a.unnamed) {
			t.accuse(a.unnamed, a.atom, "the lock does not name the command of the job", a.id)
		}
		if a.owns != none && !t.excused(a, a.owns) {
			t.accuse(a.owns, a.atom, "the lock names a process that was told it holds none", a.id)
		}
	}
	for root, end := range t.ends {
		t.life(root, end)
	}
	slices.SortFunc(t.found, func(a, b violation) int { return a.at - b.at })
	return t.found
}

// told reports whether an event repeats the one before it: the process is known and the same, and so is the time. zsh
// 5.9 writes a line twice if a trap writes another before the first has left its buffer.
func (t *trial) told(before int, e stormEvent) bool {
	b := t.events[before]
	return b.at == e.at && b.word(0) == e.word(0) && e.word(0) != "0"
}

func (t *trial) accuse(at int, atom, promise string, ids ...string) {
	t.found = append(t.found, violation{promise, at, atom, ids})
}

// breaches are events that show one by themselves.
var breaches = map[string]string{
	"remains": "an atom cannot be taken again once everybody is gone",
	"hangs":   "a contender does not come to its end",
	"trace":   "a program crashed",
}

func (t *trial) read(i int, e stormEvent) {
	if e.kind == "call" {
		a := &stormAttempt{
			stormTerms: termsOf(e.words), id: e.id, call: i,
			in: none, out: none, got: none, given: none, end: none, owns: none, unnamed: none,
		}
		t.attempts = append(t.attempts, a)
		t.byID[e.id] = a
		t.byRoot[rootOf(e.id)] = append(t.byRoot[rootOf(e.id)], a)
		t.byAtom[a.atom] = append(t.byAtom[a.atom], a)
		return
	}
	switch e.kind {
	case "sig":
		switch e.word(0) {
		case "KILL", "TERM", "INT":
			t.sigs[e.id] = append(t.sigs[e.id], i)
		case "USR1":
			t.misread[e.id] = e.word(3) == "ksh"
		}
		return
	case "start", "mark", "pid", "safe", "says": // for the reader of a history
		return
	case "exit":
		t.ends[e.id] = i
		return
	case "sender":
		t.outside[e.id] = e.number(0) == 0
		return
	case "stranger":
		if !t.outside[e.id] { // otherwise a process outside the stage did it
			t.accuse(i, "", "a process that belongs to no job was signalled", e.id)
		}
		return
	}
	if promise := breaches[e.kind]; promise != "" {
		t.accuse(i, "", promise, e.id)
		return
	}
	a := t.byID[e.id]
	if a == nil {
		t.accuse(i, "", "an event of an attempt that was not made", e.id)
		return
	}
	switch e.kind {
	case "in":
		if a.in != none && t.told(a.in, e) {
			return
		}
		if a.in != none {
			t.accuse(i, a.atom, "one attempt ran its job twice", e.id)
		}
		a.in = i
	case "out":
		a.out, a.code = i, e.number(0)
	case "clash":
		t.accuse(i, a.atom, "two jobs at once: the earlier one's processes live", e.id, e.word(1))
	case "owns":
		a.owns = i
	case "unnamed":
		a.unnamed = i
	case "got", "with":
		a.got, a.verdict, a.script = i, e.word(1), true
		if a.status = e.status(); a.status != 0 || e.kind == "with" {
			a.end = i
		}
	case "rel":
		a.status, a.end, a.verdict = e.status(), i, e.word(1)
		if a.status == 0 {
			a.given = i
		}
	case "end":
		a.status, a.end = e.status(), i
	default:
		t.accuse(i, a.atom, "unknown event", e.id)
	}
	if e.kind == "with" && a.status == 0 || e.kind == "end" && a.status == a.stormTerms.code && a.out != none {
		a.given = i
	}
}

// exclusion: never two jobs at once in one atom; readers together, never with a writer.
func (t *trial) exclusion() {
	for _, a := range t.attempts {
		for _, other := range t.byAtom[a.atom] {
			if a.beganDuring(other) && !(a.shared && other.shared) {
				t.accuse(a.in, a.atom, "two jobs at once", other.id, a.id)
			}
		}
	}
}

// beganDuring reports whether a's job began while another's certainly ran.
func (a *stormAttempt) beganDuring(other *stormAttempt) bool {
	return other != a && a.in != none && other.in != none && other.in < a.in && a.in < other.out
}

// slots: never more jobs of one family at once than it has slots.
func (t *trial) slots() {
	for _, a := range t.attempts {
		limit, n := a.stormTerms.slots, 1
		for _, other := range t.attempts {
			if limit > 0 && other.family() == a.family() && a.beganDuring(other) {
				n++
			}
		}
		if limit > 0 && n > limit {
			t.accuse(a.in, a.atom, fmt.Sprintf("%d jobs at once where %d may be", n, limit), a.id)
		}
	}
}

// intervals: never sooner than IfElapsed after a completion. Only an atom that was released with success counts: its
// stamp is no earlier than its job's end. A supervisor ends with its job's status even if it has lost the atom to a
// newcomer, and a newcomer that takes over does not look again.
func (t *trial) intervals() {
	for _, a := range t.attempts {
		for _, before := range t.byAtom[a.atom] {
			if before == a || before.shared || a.elapsed == 0 || a.in == none || before.out == none || before.given == none ||
				before.given > a.in || before.unstamps && before.code != 0 || !before.script && t.expirable(before, before.given) {
				continue
			}
			if gap := t.events[a.in].at - t.events[before.out].at; gap < a.elapsed-coarse {
				t.accuse(a.in, a.atom, fmt.Sprintf("too soon: %v after a completion, IfElapsed is %v", gap, a.elapsed), before.id, a.id)
			}
		}
	}
}

// denials: an atom is denied only while another attempt may hold it, or soon after a completion. So a
// lock that a release has left behind, or that a dead owner keeps, is found.
func (t *trial) denials() {
	for _, a := range t.attempts {
		a.until = t.lastHeld(a)
	}
	for _, a := range t.attempts {
		if !t.wasDenied(a) || t.excused(a, a.end) {
			continue
		}
		held, soon := t.held(a), t.soon(a)
		switch {
		case a.verdict == "too-soon" && !soon, a.verdict == "" && !held && !soon:
			t.accuse(a.end, a.atom, "denied, though no completion was so near, and it was not held", a.id)
		case (a.verdict == "busy" || a.verdict == "full") && !held:
			t.accuse(a.end, a.atom, "denied, though it was not held", a.id)
		}
	}
}

// wasDenied leaves out what a lock names nevertheless, and a run whose command is a run of its own: the
// status may be that one's.
func (t *trial) wasDenied(a *stormAttempt) bool {
	return a.in == none && a.end != none && a.owns == none && a.status == a.denied && t.byID[a.id+".w"] == nil
}

// lastHeld returns the last event at which an attempt may still have held its atom: its release, or, if
// none was noted, the next beginning of another job. One that was denied may have held it until then, if
// only a second look, with the lock in its hand, denied it.
func (t *trial) lastHeld(a *stormAttempt) int {
	began := a.in
	switch {
	case a.given != none:
		return a.given
	case t.wasDenied(a):
		if a.elapsed > 0 || a.stormTerms.slots > 0 || a.family() == "r" {
			return a.end
		}
		return none
	case began == none && a.end != none:
		began = a.end
	case began == none:
		if end, ended := t.ends[rootOf(a.id)]; ended {
			began = end
		}
	}
	next := len(t.events)
	for _, b := range t.byAtom[a.atom] {
		if b != a && !b.shared && began != none && b.in > began {
			next = min(next, b.in)
		}
	}
	return next
}

// held reports whether another attempt may have held a's atom, or a's slot, while a asked for it.
func (t *trial) held(a *stormAttempt) bool {
	return slices.ContainsFunc(t.attempts, func(o *stormAttempt) bool {
		same := o.atom == a.atom || a.stormTerms.slots > 0 && o.family() == a.family()
		return same && o != a && o.call < a.end && o.until > a.call
	})
}

// soon reports whether a may have asked within IfElapsed of a completion: of a release, of the taking
// over from a dead owner, or of one before this history.
func (t *trial) soon(a *stormAttempt) bool {
	began := a.call
	if a.pass {
		began = t.byRoot[rootOf(a.id)][0].call
	}
	since := t.events[began].at - a.elapsed - coarse
	return a.elapsed > 0 && (t.events[0].at > since || slices.ContainsFunc(t.byAtom[a.atom], func(o *stormAttempt) bool {
		return o != a && !t.wasDenied(o) && o.call < a.end && t.events[min(o.until, a.end)].at > since
	}))
}

// status: the exit status of an attempt is true.
func (t *trial) status(a *stormAttempt) {
	guilty := func(promise string) {
		t.accuse(a.end, a.atom, fmt.Sprintf("status %d: %s", a.status, promise), a.id)
	}
	ran, finished := a.in != none && a.in < a.end, a.out != none && a.out < a.end
	excused := t.excused(a, a.end)
	switch {
	case a.in > a.end:
		// The job of a supervisor that was killed goes on, and holds the atom.
		if !excused {
			guilty("and its job ran after that")
		}
	case a.status == 0:
		if !ran && a.denied == 0 {
			break // denied
		}
		if !finished {
			guilty("though its job did not run to its end")
		} else if !a.script && a.code != 0 {
			guilty(fmt.Sprintf("and its job ended with %d", a.code))
		}
	case finished && !a.script && a.status == a.code: // it may end as a denial does
	case a.status == a.denied:
		if ran && !t.expirable(a, a.end) {
			guilty("denied, and its job ran")
		}
		if a.script && !slices.Contains([]string{"busy", "too-soon", "full", "lost"}, a.verdict) {
			guilty("with the verdict " + a.verdict)
		}
	case a.status == denied && ran && t.expirable(a, a.end): // lost
	case a.status == enforced && a.enforce:
		if !t.aged(a, a.limit, a.end) {
			guilty("before ExpireAfter")
		}
	case a.status == enforced && t.byID[a.id+".w"] != nil && t.byID[a.id+".w"].enforce:
		// Its command is a run of its own, which has ended its job; its status is passed through.
		if inner := t.byID[a.id+".w"]; !t.aged(inner, inner.limit, a.end) {
			guilty("before ExpireAfter")
		}
	case a.status == stuck:
		if a.limit < 0 && !excused {
			guilty("no process was to be ended")
		}
	case a.status > 128 && a.status < 160:
		if !excused {
			guilty("ended by a signal before ExpireAfter")
		}
	case a.status == int(syscall.SIGUSR1) && t.misread[rootOf(a.id)] && a.script && !ran:
		// ksh93 takes the number of a trapped signal for a helper's status (W14).
	case a.status == int(syscall.SIGSTOP) && excused && !ran:
		// A helper was stopped and then killed: for a command in a substitution zsh 5.9 keeps the
		// number of the first signal.
	default:
		guilty("not one of those that can be")
	}
	if finished && !excused && !a.script && a.status != a.code && a.status != enforced {
		guilty(fmt.Sprintf("its job ended with %d", a.code))
	}
}

// life: no process is ended before ExpireAfter. A contender that died of a signal got one from the test, or held an
// atom that a newcomer might take over; or it is a shell that crashed, with a signal that no process here sends.
func (t *trial) life(root string, end int) {
	status := t.events[end].status()
	if status <= 128 || status >= 160 || len(t.sigs[root]) > 0 || crashed(status) {
		return
	}
	for _, a := range t.byRoot[root] {
		if t.expirable(a, end) {
			return
		}
	}
	t.accuse(end, "", fmt.Sprintf("status %d: ended by a signal, holding nothing that had expired", status), root)
}

// crashed reports whether the status is that of a program's own fault (zsh 5.9 sometimes
// crashes if USR1 comes in the middle of something).
func crashed(status int) bool {
	switch syscall.Signal(status - 128) {
	case syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGILL, syscall.SIGFPE, syscall.SIGABRT:
		return true
	}
	return false
}

// excused reports whether an attempt may have been disturbed until then: the test has sent its contender a fatal
// signal, or a newcomer may have taken over something that the contender held.
func (t *trial) excused(a *stormAttempt, until int) bool {
	root := rootOf(a.id)
	for _, sig := range t.sigs[root] {
		if sig < until && t.events[a.call].at-t.events[sig].at < lagging {
			return true
		}
	}
	for _, mine := range t.byRoot[root] {
		if mine.call < until && mine.holds(a.call) && t.expirable(mine, until) {
			return true
		}
	}
	return false
}

// expirable reports whether a newcomer may take over an attempt's atom at that time: a newcomer is there, and the
// limit in force is no longer than the age of the lock, which is no older than the call.
func (t *trial) expirable(a *stormAttempt, at int) bool {
	if a.call > at || !a.holds(at) {
		return false
	}
	if a.enforce && t.aged(a, a.limit, at) {
		return true
	}
	for _, other := range t.byAtom[a.atom] {
		limit := other.limit
		if limit < 0 && !other.script { // a run without a limit: the owner's counts
			limit = a.limit
		}
		if other == a || limit < 0 || other.call > at {
			continue
		}
		if gone := other.end; gone != none && (gone < a.call || a.in != none && gone < a.in) {
			continue
		}
		if t.aged(a, limit, at) {
			return true
		}
	}
	return false
}

// holds reports whether an attempt may hold its atom at that time: it has not released it, and
// was not denied. (An owner that lost it is being ended.)
func (a *stormAttempt) holds(at int) bool {
	gaveBack := a.given != none && a.given < at
	neverHad := a.script && a.in == none && a.end != none && a.end < at && a.status == denied
	return !gaveBack && !neverHad
}

// aged reports whether the lock of an attempt may be that old at that time.
func (t *trial) aged(a *stormAttempt, age time.Duration, at int) bool {
	return t.events[at].at-t.events[a.call].at >= age-coarse
}

// tell describes a violation with the events around it: those of its atom, of the contenders in
// it, and all if it has no atom.
func (v violation) tell(events []stormEvent) string {
	atoms, roots := map[string]string{}, map[string]bool{}
	for _, id := range v.ids {
		roots[rootOf(id)] = true
	}
	var lines []string
	for i, e := range events[:min(len(events), v.at+400)] {
		if e.kind == "call" {
			atoms[e.id] = termsOf(e.words).atom
		}
		near := v.atom == "" && i > v.at-25 && i < v.at+5
		if !near && !roots[rootOf(e.id)] && (v.atom == "" || atoms[e.id] != v.atom) {
			continue
		}
		mark := map[bool]string{true: "=>", false: "  "}[i == v.at]
		lines = append(lines, mark+e.String())
		if i < v.at && len(lines) > 60 {
			lines = lines[1:]
		}
	}
	text := strings.Join(lines[:min(len(lines), 90)], "\n")
	return fmt.Sprintf("%s (%s %s)\n%s", v.promise, v.atom, strings.Join(v.ids, " "), text)
}
