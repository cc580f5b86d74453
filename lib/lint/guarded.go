package lint

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"adlock/lib/config"
	"adlock/lib/cronline"
	"adlock/lib/crontab"
)

// guarded checks a line's words for adlock, if the crontab's SHELL puts it under a lock. That
// shell does not run a line whose settings it does not understand, and reports that only at the
// hour of the job.
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
	if j.LineRefusal != nil {
		if err := j.LineRefusal(j.variable, l); err != nil {
			j.refused(err.Error())
			return
		}
	}
	j.late()
	j.locks(j.invocationOfLine(l))
}

// unguarded looks for a line that says to adlock's SHELL what another passes over.
func (j *job) unguarded() {
	l, err := cronline.Parse(j.command)
	if err != nil && strings.Contains(strings.ToUpper(j.command), "ADLOCK") || len(l.Settings) > 0 {
		j.add(j.Number, "a setting without the SHELL", "no SHELL of adlock's stands above, and the job has neither lock nor limit",
			"say SHELL="+cmp.Or(j.Shell, "/usr/lib/adlock/shell")+" above the line")
	}
}

func (j *job) variable(name string) string {
	value, _ := crontab.Setting(j.lines, j.at, name)
	return value
}

// invocationOfLine is a line as its call of `adlock run`.
func (j *job) invocationOfLine(l cronline.Line) *invocation {
	v := &invocation{program: "adlock", text: l.Text, call: &syntax.CallExpr{}, options: map[string]*syntax.Word{}}
	for _, s := range l.Settings {
		name, value, _ := strings.Cut(s, "=")
		v.call.Assigns = append(v.call.Assigns, &syntax.Assign{Name: &syntax.Lit{Value: name}, Value: quoted(value)})
	}
	if l.Name != "" {
		v.options["name"] = quoted(l.Name)
	} else if j.limit(v, "name") == nil {
		v.options["name"] = quoted(l.Text)
	}
	return v
}

// late looks for a setting of the line's own lock that only the job gets, by which time the
// line has its lock.
func (j *job) late() {
	found := ""
	syntax.Walk(j.file, func(n syntax.Node) bool {
		for _, name := range setBy(n) {
			if found == "" && j.isOfOneLock(name) {
				found = name
			}
		}
		return found == ""
	})
	if found != "" && !has(j.file, "adlock") {
		j.add(j.Number, "a setting too late", found+" is set in the job, which has its lock by then", `say ": NAME `+found+`=VALUE ;" before the command`)
	}
}

// setBy are the variables that a part of a command sets, for itself or for what it starts.
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

// isOfOneLock reports whether a variable is a setting of one lock, and not the place of all
// locks.
func (j *job) isOfOneLock(variable string) bool {
	return slices.ContainsFunc(j.Options, func(o config.Option) bool { return o.Env == variable && !o.Inherited })
}

func (j *job) refused(why string) {
	j.add(j.Number, "a setting that is refused", "the job is never run: "+why, "adlock help shell tells how to say it")
}

// noName matches words at the beginning of a command that do nothing there, except to name a
// lock, and the rest.
var noName = regexp.MustCompile("^[ \t]*(:[ \t]+[^;&|<>()$`#\\s][^;&|<>()$`#\n]*)(;|&&|\\|\\||$)")

// passedOver looks for words that were meant to name a lock, or to set something, and do
// neither: the whole command is then the name.
func (j *job) passedOver() {
	found := noName.FindStringSubmatch(j.command)
	if found == nil {
		return
	}
	reason := strconv.Quote(strings.TrimRight(found[1], " \t")) + " is passed over: it names no lock and sets nothing"
	if found[2] == "" {
		reason = "a shell passes over all that follows \":\", and nothing is run"
	}
	j.add(j.Number, "a name that is none", reason, `say ": NAME ADLOCK_X=VALUE ;", a name of one word`)
}

// absent reports a SHELL that was meant as adlock's, and with which cron can run nothing.
func (f *findings) absent(lines []crontab.Line, installed string) {
	for i := range lines {
		l := &lines[i]
		if l.Kind != crontab.Variable || l.Name != "SHELL" || installed == "" || !strings.Contains(l.Value, "/adlock") {
			continue
		}
		if _, err := os.Stat(l.Value); errors.Is(err, fs.ErrNotExist) {
			f.add(l.Number, "a SHELL that is not there", "cron can run no line below it", "say SHELL="+installed)
		}
	}
}

// overruled reports a SHELL that replaces adlock's before any line is guarded.
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
