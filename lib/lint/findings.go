package lint

import (
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/limit"
	"adlock/lib/policy"
)

type findings struct {
	all   []Mistake
	known map[Mistake]bool // Line and What only
}

func (f *findings) add(line int, what, reason, cure string) {
	f.all = append(f.all, Mistake{line, what, reason, cure})
	f.known[Mistake{Line: line, What: what}] = true
}

// once adds a mistake of a line only once, though several jobs may show it.
func (f *findings) once(line int, what, reason, cure string) {
	if !f.told(line, what) {
		f.add(line, what, reason, cure)
	}
}

func (j *job) namesUser() {
	words := strings.Fields(j.Command)
	if !j.isUsers || len(words) < 2 || !j.IsUser(words[0]) || j.isCommand(words[0]) || j.variable("BASH_ENV") != "" {
		return
	}
	if (words[1][0] == '/' || j.isCommand(words[1])) && !j.isOn(j.variable("PATH"), words[0]) {
		j.add(j.Number, "a user in a user's own crontab", "the command begins with "+strconv.Quote(words[0])+", which is a user", "leave it out; check a crontab with users with -u")
	}
}

func (f *findings) told(line int, what string) bool { return f.known[Mistake{Line: line, What: what}] }

func (j *job) noVerb(call *syntax.CallExpr) {
	args := unwrapped(call.Args)
	if len(args) < 2 {
		return
	}
	name, _ := literal(args[0])
	verb, _ := literal(args[1])
	if path.Base(name) == "adlock" && verb != "run" && config.Nearest(verb, []string{"run"}) != "" {
		j.add(j.Number, "a verb that is none", "adlock has no "+strconv.Quote(verb), "say adlock run")
	}
}

var asks = []string{"command", "type", "which", "hash", "test", "[", "[[", ".", "source", "eval", "export", "su", "sudo", "runuser"}

// noAdlock reports an adlock that the job does not find, unless none is installed on this machine.
func (j *job) noAdlock(words []*syntax.Word) {
	name := wordOf(unwrapped(words))
	if path.Base(name) != "adlock" {
		return
	}
	where := j.findIn("adlock", j.Elsewhere)
	if where == "" {
		return
	}
	if path.IsAbs(name) && j.Shell != "" && j.Missing(j.runsAs(), name) {
		j.once(j.Number, "an adlock that is not there", "no such file: "+name+", and the job is never run", "write "+where)
	}
	search, set := j.setting("PATH")
	if !set {
		search = j.CronPath
	}
	_, profile := j.setting("BASH_ENV")
	if name == "adlock" && !j.isOn(search, name) && !profile && !has(j.file, asks...) && !strings.Contains(j.command, "PATH=") {
		j.once(j.Number, "not on cron's PATH", name+" is not found in "+search, "write "+where)
	}
}

// isOn reports whether the job's user sees a file of that name in a directory of a PATH, which may be that user's own.
func (j *job) isOn(search, name string) bool {
	return slices.ContainsFunc(filepath.SplitList(search), func(dir string) bool {
		return path.IsAbs(dir) && !j.Missing(j.runsAs(), path.Join(dir, name))
	})
}

// noSetting reports a variable whose name is nearly a setting's: adlock ignores it and prints nothing.
func (f *findings) noSetting(c *Checker, line int, name string) {
	if c.Nearest == nil || !strings.HasPrefix(name, "ADLOCK_") {
		return
	}
	if meant := c.Nearest(name); meant != "" {
		f.add(line, "a variable that sets nothing", "adlock reads no "+name, "say "+meant)
	}
}

func (j *job) changes(words []*syntax.Word) {
	for _, w := range words {
		if part := changing(w); part != "" {
			j.add(j.Number, "a name that changes", part+" makes another lock in each run, so no run excludes another", "name what is locked, not the run")
			return
		}
	}
}

func (j *job) limits(v *invocation, saidIfElapsed, saidExpireAfter *syntax.Word) {
	ifElapsed, wrong1 := durationOf(saidIfElapsed)
	expireAfter, wrong2 := durationOf(saidExpireAfter)
	for _, wrong := range []string{wrong1, wrong2} {
		if wrong != "" {
			j.add(j.Number, "no duration", wrong, "write it as in 15m, 1h30m, never")
			return
		}
	}
	if enforce, whole := literal(j.own(v, "enforce")); whole && isOn(enforce) && (expireAfter == 0 && !j.isFiled("ADLOCK_EXPIRE_AFTER") || expireAfter == limit.Never) {
		j.unenforced(j.Number)
	}
	if expireAfter == unknown || saidExpireAfter == nil {
		return
	}
	if ifElapsed != unknown {
		if warning := (policy.Limits{IfElapsed: ifElapsed, ExpireAfter: expireAfter, Source: policy.Said}).Warning(); warning != "" && expireAfter > 0 {
			j.add(j.Number, "ExpireAfter below IfElapsed", warning, "give it more time, or a shorter interval")
		}
	}
	name, whole := literal(v.options["name"])
	if !whole || v.has("program") || v.has("operator") || v.has("host") || v.has("store") || j.Longest == nil || expireAfter == 0 {
		return
	}
	if longest := j.Longest(j.runsAs(), atom.Named(name, j.Host)); longest > expireAfter {
		j.add(j.Number, "ExpireAfter below the runtime", "it is "+limit.Format(expireAfter)+", and a run that succeeded took "+limit.Format(longest.Round(time.Second)),
			"give it more time, or say auto (not for jobs that wait for a database or ssh)")
	}
}

// unenforced reports ADLOCK_ENFORCE without a limit: `adlock run` ignores that, and refuses --enforce without one.
func (f *findings) unenforced(line int) {
	f.add(line, "enforced without a limit", "ADLOCK_ENFORCE is ignored, as no limit is said", "say ADLOCK_EXPIRE_AFTER=D")
}

func isOn(value string) bool {
	var on bool
	return config.Toggle(&on)(value) == nil && on
}

const unknown = time.Duration(-1)

// durationOf returns the duration that a word means: 0 for a missing or empty word, unknown for auto and for
// a word that is known only when the line runs. wrong is why the word is no duration.
func durationOf(w *syntax.Word) (d time.Duration, wrong string) {
	text, whole := literal(w)
	switch {
	case w == nil || whole && text == "":
		return 0, ""
	case !whole || text == "auto":
		return unknown, ""
	}
	d, err := limit.Parse(limit.InMinutes(text)) // run.Refusal reports a number without a unit on a command line
	if err != nil {
		return unknown, err.Error()
	}
	return d, ""
}
