package lint

import (
	"path"
	"slices"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"adlock/lib/limit"
)

// crowded is the longest period at which jobs that wait without end soon pile up if one of them hangs.
const crowded = 5 * time.Minute

func (j *job) isCrowded() bool { return 0 < j.Schedule.Shortest && j.Schedule.Shortest <= crowded }

func (j *job) crowds(v *invocation) {
	wait, _ := literal(j.option(v, "wait"))
	d, _ := durationOf(j.option(v, "expire-after"))
	if wait != "forever" || !j.isCrowded() || 0 < d && d <= j.Schedule.Shortest || d == 0 && j.isFiled("ADLOCK_EXPIRE_AFTER") {
		return
	}
	j.pileUp("say --wait " + limit.Format(j.Schedule.Shortest) + " (ADLOCK_WAIT), or leave it out")
}

// lockersThatWait has the options with which a program's waiters do not pile up, and the one to advise.
var lockersThatWait = map[string]struct{ not, cure string }{"flock": {"nwus", "-n"}, "setlock": {"n", "-n"}, "lockf": {"t", "-t 0"}}

func (j *job) blocks(call *syntax.CallExpr) {
	args := unwrapped(call.Args)
	if len(args) == 0 {
		return
	}
	name := nameOf(&syntax.CallExpr{Args: args})
	locker, is := lockersThatWait[name]
	letters, rest := lockerOptions(args[1:])
	isLimited := slices.ContainsFunc(call.Args[:len(call.Args)-len(args)], func(w *syntax.Word) bool { return pathIs(w, "timeout") })
	if !is || !j.isCrowded() || isLimited || len(rest) == 0 || strings.ContainsAny(letters, locker.not) {
		return
	}
	if descriptor := wordOf(rest); len(rest) > 1 || descriptor != "" && strings.Trim(descriptor, "0123456789") == "" {
		j.pileUp("say " + name + " " + locker.cure)
	}
}

func pathIs(w *syntax.Word, name string) bool { return path.Base(wordOf([]*syntax.Word{w})) == name }

func (j *job) pileUp(cure string) {
	j.once(j.Number, "waiters that pile up", "it starts every "+limit.Format(j.Schedule.Shortest)+", and each start waits without end: if a job hangs, they are more and more", cure)
}
