package lint

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"adlock/lib/config"
	"adlock/lib/cronline"
	"adlock/lib/crontab"
)

// guarded checks a line below adlock's SHELL now: the shell itself would refuse the line's words for adlock only when
// the job is due. locked is false if the line runs without a lock.
func (j *job) guarded() (locked bool) {
	l, err := cronline.Parse(j.command)
	if err != nil {
		j.refused(err.Error())
		return true
	}
	if l.Unlocked {
		return false
	}
	if l.Name == "" && len(l.Settings) == 0 {
		j.passedOver()
	}
	if j.LineRefusal != nil {
		if err := j.LineRefusal(crontab.Completed(j.variable, j.runsAs(), j.Filed), l); err != nil {
			j.refused(err.Error())
			return true
		}
	}
	j.late()
	j.locks(j.invocationOfLine(l))
	return true
}

func (j *job) unguarded() {
	l, err := cronline.Parse(j.command)
	if err != nil && strings.Contains(strings.ToUpper(j.command), "ADLOCK") || len(l.Settings) > 0 {
		j.add(j.Number, "a setting without the SHELL", "no SHELL of adlock's stands above, and the job has neither lock nor limit",
			"say SHELL="+cmp.Or(j.Shell, "/usr/lib/adlock/shell")+" above the line")
	}
}

func (j *job) variable(name string) string {
	value, _ := j.setting(name)
	return value
}

func (j *job) invocationOfLine(l cronline.Line) *invocation {
	v := &invocation{program: "adlock", text: l.Text, call: &syntax.CallExpr{}, options: map[string]*syntax.Word{}}
	for _, s := range l.Settings {
		name, value, _ := strings.Cut(s, "=")
		v.call.Assigns = append(v.call.Assigns, &syntax.Assign{Name: &syntax.Lit{Value: name}, Value: quoted(value)})
	}
	if l.Name != "" {
		v.options["name"] = quoted(l.Name)
	} else if j.option(v, "name") == nil {
		v.options["name"] = quoted(l.Text)
	}
	return v
}

// late reports a setting of the line's own lock inside the job, which has its lock by then.
func (j *job) late() {
	found := ""
	syntax.Walk(j.file, func(n syntax.Node) bool {
		for _, name := range setBy(n) {
			if found == "" && isOfOneLock(name) {
				found = name
			}
		}
		return found == ""
	})
	if found != "" && !has(j.file, "adlock") {
		j.add(j.Number, "a setting too late", found+" is set in the job, which has its lock by then", `say ": NAME `+found+`=VALUE ;" before the command`)
	}
}

func setBy(n syntax.Node) (names []string) {
	switch n := n.(type) {
	case *syntax.Assign:
		if n.Name != nil {
			names = append(names, n.Name.Value)
		}
	case *syntax.CallExpr:
		if !slices.Contains([]string{"export", "env", "readonly"}, nameOf(n)) {
			return nil
		}
		for _, w := range n.Args[1:] {
			text, _ := literal(w)
			if name, _, is := strings.Cut(text, "="); is {
				names = append(names, name)
			}
		}
	}
	return names
}

// isOfOneLock reports whether a variable is a setting of one lock, which the job does not inherit.
func isOfOneLock(variable string) bool {
	o := config.OfVariable(variable)
	return o != nil && !o.Inherited
}

func (j *job) refused(why string) {
	j.add(j.Number, "a setting that is refused", "the job is never run: "+why, "adlock help shell tells how to say it")
}

// noName matches first words that can only be meant to name a lock, and the operator after them.
var noName = regexp.MustCompile("^[ \t]*(:[ \t]+(?:[^;&|<>()$`#\\s][^;&|<>()$`#\n]*|[A-Za-z_](?:[^;&|#\n]|[<>]&)*))(;|&&|\\|\\||$)")

var noBlank = regexp.MustCompile("^[ \t]*:([-._A-Za-z0-9]+)([ \t;]|$)")

// passedOver reports words meant for adlock that it ignores: the lock is named after the whole command.
func (j *job) passedOver() {
	if found := noBlank.FindStringSubmatch(j.command); found != nil {
		j.add(j.Number, "a name that is none", strconv.Quote(":"+found[1])+" is a command, and there is none of that name: a blank is missing",
			"say \": "+found[1]+" …\"")
		return
	}
	found := noName.FindStringSubmatch(j.command)
	if found == nil {
		return
	}
	reason := strconv.Quote(strings.TrimRight(found[1], " \t")) + " is passed over: it names no lock and sets nothing"
	if found[2] == "" {
		reason = "a shell passes over all that follows \":\", and no job follows"
	}
	j.add(j.Number, "a name that is none", reason, `say ": NAME ADLOCK_X=VALUE ;", a name of one word`)
}

func (j *job) absent(variable string) {
	l, cure := j.set[variable], "name a shell that is there"
	if l == nil || !path.IsAbs(l.Value) || !j.Missing(j.runsAs(), l.Value) {
		return
	}
	isOwn := strings.Contains(l.Value, "/adlock")
	if isOwn {
		cure = "say SHELL=" + j.Shell
	}
	if !isOwn || j.Shell != "" { // if adlock is not installed here, the crontab may be another machine's
		j.once(l.Number, "a SHELL that is not there", "no line below it can run", cure)
	}
}

func (f *findings) overruled(lines []crontab.Line) {
	guard := ""
	for i := range lines {
		l := &lines[i]
		switch {
		case l.Kind == crontab.Job:
			guard = ""
		case l.Kind != crontab.Variable || l.Name != "SHELL":
		case crontab.Guards(l.Value):
			guard = l.Value
		case guard != "":
			f.add(l.Number, "SHELL set twice", "it takes the place of SHELL="+guard+" above, which guards no line", "say ADLOCK_SHELL="+l.Value)
		}
	}
}
