package lint

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"adlock/lib/config"
	"adlock/lib/cronline"
	"adlock/lib/crontab"
)

var expandable = regexp.MustCompile("^~|[$][A-Za-z_({]|`")

func (f *findings) unexpanded(l *crontab.Line) {
	if why := Unexpanded(l); why != "" {
		f.add(l.Number, "a setting that cron does not expand", why, "write the full path")
	}
}

// Unexpanded returns the harm done by a variable whose path only a shell would expand; "" if there is none.
func Unexpanded(l *crontab.Line) string {
	const none = "no job below it ever runs"
	follows := map[string]string{"ADLOCK_DIR": none, "ADLOCK_STORE": none, "ADLOCK_FLOCK": none, "ADLOCK_LOGDIR": "no runlog is written"}[l.Name]
	if follows == "" || !expandable.MatchString(l.Value) {
		return ""
	}
	return "cron passes " + l.Value + " on as it stands: " + follows
}

func (j *job) vanishes(v *invocation) bool {
	known := j.environment(v)
	if known == nil {
		return false
	}
	dir := known("ADLOCK_DIR")
	line := j.setter("ADLOCK_DIR", dir).Number
	if store, _ := literal(j.option(v, "store")); store != "" && !config.IsRemote(store) {
		dir, line = store, j.Number
	}
	why := config.Fleeting(dir)
	if why != "" {
		j.once(line, "a lock directory that does not last", why, "leave it out, or name a directory elsewhere")
	}
	return why != ""
}

func (j *job) setter(name, value string) *crontab.Line {
	if line := j.set[name]; line != nil && line.Value == value {
		return line
	}
	return j.Line // the job's own line sets the variable
}

func (j *job) locksFile(v *invocation) {
	file, whole := literal(j.option(v, "flock"))
	if !whole || !filepath.IsAbs(file) {
		return
	}
	line := j.setter("ADLOCK_FLOCK", file).Number
	if why := config.Cleaned(file); why != "" {
		j.once(line, "a lock file that does not last", why, "name a file elsewhere, in each line that locks it")
	}
	if j.IsNetwork != nil && !j.mayBeOn(v, "shared") && j.IsNetwork(j.runsAs(), file) {
		j.once(line, "a lock file of the network", file+" is on another machine's disk: to lock it alone needs the right to write it, and what locks it there may not be known here",
			"name a file of this machine, in each line that locks it")
	}
}

var inHome = regexp.MustCompile("^\\$(?:HOME|\\{HOME\\})/([^$`]*)$")

func (j *job) sharesFile(v *invocation) {
	text, whole := crontab.Literal(v.lock, j.command)
	file := inHome.ReplaceAllString(text, "~/$1")
	if !whole && file == text || ignored.MatchString(j.Text()) {
		return
	}
	key := path.Clean(file)
	if !filepath.IsAbs(file) { // the same words before flock, such as a cd, lead to the same directory
		user, _ := j.userOrPath()
		key = fmt.Sprintf("%q %q %q %q", key, user, j.variable("HOME"), j.command[:unwrapped(v.call.Args)[0].Pos().Offset()])
	}
	core, _ := crontab.WithoutSleep(j.textOf(v))
	j.share("flock "+key, taken{by: j, text: core, waits: v.waits, isShared: v.isShared}, "give each a file of its own, or have both wait (flock -w)")
}

func (j *job) deploys(v *invocation) {
	name, _ := literal(v.options["name"])
	under := j.under(v)
	isNameOf := func(text string) bool { made, _ := cronline.NameOf(text); return made == name }
	if v.program == "flock" {
		return
	}
	if name != "" && name != under && !slices.ContainsFunc(append(crontab.ShellTexts(under), under), isNameOf) || v.has("operand") {
		return
	}
	if part := crontab.VersionInPath(under); part != "" && (name != "" || j.option(v, "name") == nil && j.option(v, "operand") == nil) {
		j.add(j.Number, "a name that changes", part+crontab.ChangesLock, "give the lock a name (: NAME ; or --name)")
	}
}

func (j *job) within(v *invocation) {
	under := j.under(v)
	for _, text := range append(crontab.ShellTexts(under), under) {
		file, err := crontab.Parse(text)
		if err != nil {
			continue
		}
		calls(file, func(call *syntax.CallExpr) {
			if inner := j.invocationOf(call); inner != nil && isOneLock(v, inner) {
				j.once(j.Number, "a lock within itself", inner.program+" in the job asks for the lock that the line holds: what it should run is never run", "take it once")
			}
		})
	}
}

// isOneLock reports whether two calls certainly name one lock that they cannot hold at the same time.
func isOneLock(v, inner *invocation) bool {
	if file, whole := literal(v.file()); whole && filepath.IsAbs(file) && is(inner.file(), file) {
		return !(v.isShared || v.has("shared")) || !(inner.isShared || inner.has("shared"))
	}
	if v.program != "adlock" || inner.program != "adlock" || len(inner.call.Assigns) > 0 {
		return false
	}
	for _, other := range []string{"program", "operator", "operand", "host", "store", "slots", "shared"} {
		if v.has(other) || inner.has(other) {
			return false
		}
	}
	name, whole := literal(v.options["name"])
	return whole && name != "" && is(inner.options["name"], name)
}

func unguarded(lines []crontab.Line) (jobs bool) {
	guards := false
	for i := range lines {
		switch l := &lines[i]; {
		case l.Kind == crontab.Variable && l.Name == "SHELL":
			guards = crontab.Guards(l.Value)
		case l.Kind == crontab.Job:
			if guards || strings.Contains(l.Command, "adlock shell") || strings.Contains(l.Command, "adlock/shell") {
				return false
			}
			jobs = true
		}
	}
	return jobs
}

func (f *findings) noShell(c *Checker, l *crontab.Line) {
	if l.Name == "ADLOCK_SHELL" && l.Value != "" {
		f.add(l.Number, "a setting without the SHELL", "no line has a SHELL of adlock's, and nothing else reads ADLOCK_SHELL: the jobs have no lock", "say SHELL="+cmp.Or(c.Shell, "/usr/lib/adlock/shell")+" beside it")
	}
}
