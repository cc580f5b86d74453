package lint

import (
	"path"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/limit"
	"adlock/lib/policy"
)

// findings are the mistakes so far.
type findings []Mistake

func (f *findings) add(line int, what, reason, cure string) {
	*f = append(*f, Mistake{line, what, reason, cure})
}

// termsOf are the limits of a call of `adlock run`, and its atom where only its name
// makes it.
func (c *Checker) termsOf(v *invocation) terms {
	t := terms{ifElapsed: v.said("if-elapsed"), expireAfter: v.said("expire-after")}
	name, whole := literal(v.said("name"))
	if whole && !v.has("program") && !v.has("operator") && !v.has("host") && !v.has("store") {
		t.atom = atom.Named(name, c.Host)
	}
	return t
}

// noVerb tells of a verb that is like run, and is none.
func (f *findings) noVerb(line int, call *syntax.CallExpr) {
	args := unwrapped(call.Args)
	if len(args) < 2 {
		return
	}
	name, _ := literal(args[0])
	verb, _ := literal(args[1])
	if path.Base(name) == "adlock" && verb != "run" && config.Nearest(verb, []string{"run"}) != "" {
		f.add(line, "a verb that is none", "adlock has no "+strconv.Quote(verb), "say adlock run")
	}
}

// changes tells of a lock whose name is another in each run.
func (f *findings) changes(line int, words []*syntax.Word, values map[string]*syntax.Word) {
	for _, w := range words {
		if part := changing(w, values); part != "" {
			f.add(line, "a name that changes", part+" makes another lock in each run, and nobody is excluded", "name what is locked, not the run")
			return
		}
	}
}

// terms are the limits of a lock as the text has them; nil: not said.
type terms struct {
	ifElapsed, expireAfter *syntax.Word
	atom                   atom.Atom // zero: not known
}

// limits tells of limits that contradict each other, or the runs that there were.
func (c *Checker) limits(f *findings, line int, t terms) {
	ifElapsed, wrong1 := durationOf(t.ifElapsed)
	expireAfter, wrong2 := durationOf(t.expireAfter)
	for _, wrong := range []string{wrong1, wrong2} {
		if wrong != "" {
			f.add(line, "no duration", wrong, "write it as in 15m, 1h30m, never")
			return
		}
	}
	if expireAfter == unknown || t.expireAfter == nil {
		return
	}
	if ifElapsed != unknown {
		if warning := (policy.Limits{IfElapsed: ifElapsed, ExpireAfter: expireAfter, Source: policy.Said}).Warning(); warning != "" && expireAfter > 0 {
			reason, more, _ := strings.Cut(warning, ": ")
			f.add(line, "ExpireAfter below IfElapsed", reason+", so "+more, "give it more time, or a shorter interval")
		}
	}
	if t.atom == (atom.Atom{}) || c.Longest == nil || expireAfter == 0 {
		return
	}
	if longest := c.Longest(t.atom); longest > expireAfter {
		f.add(line, "ExpireAfter below the runtime", "it is "+limit.Format(expireAfter)+", and a run that succeeded took "+limit.Format(longest.Round(time.Second)),
			"give it more time, or say auto")
	}
}

func isNever(d time.Duration) bool { return d == limit.Never }

// unknown is a duration that only the run tells.
const unknown = time.Duration(-1)

// durationOf is the duration that a word is; wrong is why it is none. No word, and an
// empty one, is 0.
func durationOf(w *syntax.Word) (d time.Duration, wrong string) {
	text, whole := literal(w)
	switch {
	case w == nil || whole && text == "":
		return 0, ""
	case !whole || text == "auto":
		return unknown, ""
	}
	d, err := limit.Parse(text)
	if err != nil {
		return unknown, err.Error()
	}
	return d, ""
}
