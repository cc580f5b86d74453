package lint

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"adlock/lib/config"
	"adlock/lib/cronline"
)

// guarded looks at what a line says to adlock, where the crontab's SHELL puts it under
// a lock. That shell runs nothing of a line whose settings it does not understand, and
// tells that at the hour of the job.
func (j *job) guarded() {
	l, err := cronline.Parse(j.command)
	if err != nil {
		j.refused(err.Error())
		return
	}
	if l.Unlocked {
		return
	}
	if l.Name == "" && len(l.Settings) == 0 {
		j.passedOver()
	}
	v := &invocation{program: "adlock", call: &syntax.CallExpr{}, options: map[string]*syntax.Word{}}
	if l.Name != "" {
		v.options["name"] = quoted(l.Name)
	} else if j.limit(v, "name") == nil {
		v.options["name"] = quoted(l.Text)
	}
	if j.settings(v, l.Settings) {
		j.locks(v)
	}
}

// settings reads those of the line into v, and tells whether all that are set for it
// would be understood.
func (j *job) settings(v *invocation, said []string) bool {
	for _, s := range said {
		name, value, _ := strings.Cut(s, "=")
		if !slices.Contains(j.Settings, name) {
			j.refused(name + ": " + config.UnknownText("setting", name, "", j.Settings))
			return false
		}
		for _, o := range j.Options {
			if o.Env == name {
				v.options[o.Name] = quoted(value)
			}
		}
	}
	for _, o := range j.Options {
		value, _ := literal(j.limit(v, o.Name))
		if o.Env == "" || value == "" {
			continue
		}
		if err := o.Set(value); err != nil {
			j.refused(o.Env + ": " + err.Error())
			return false
		}
	}
	return true
}

func (j *job) refused(why string) {
	j.add(j.Number, "a setting that is refused", "the job is never run: "+why, "adlock help shell tells how to say it")
}

// noName are words at the beginning of a command that do nothing there, save to name a
// lock.
var noName = regexp.MustCompile("^[ \t]*(:[ \t]+[^;&|<>()$`#\\s][^;&|<>()$`#\n]*)(?:;|&&)")

// passedOver looks for words that were meant to name a lock, or to set something, and do
// neither: the whole command is then the name.
func (j *job) passedOver() {
	if found := noName.FindStringSubmatch(j.command); found != nil {
		j.add(j.Number, "a name that is none", strconv.Quote(strings.TrimRight(found[1], " \t"))+" is passed over: it names no lock and sets nothing",
			`say ": NAME ADLOCK_X=VALUE ;", a name of one word`)
	}
}
