package crontab

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"

	"adlock/lib/cronline"
)

const shellVariable = "ADLOCK_SHELL"

// Guard puts the jobs of a crontab under locks by one line, SHELL=shell, above the first variable or job. A SHELL of
// the crontab becomes ADLOCK_SHELL. If all jobs lock by themselves, the text stays. If a line cannot stand below
// SHELL=shell, or would share a lock that it does not name with another job, refused is that line, and r is empty.
func (w *Wrapper) Guard(lines []Line, shell string) (r Result, refused *Left) {
	v, jobs, taken := noVariables(), map[*Line]candidate{}, names{}
	for i := range lines {
		l := &lines[i]
		why := ""
		switch l.Kind {
		case Variable:
			why = cannotMove(l)
			v.set(l)
		case Unknown:
			r.Left = append(r.Left, Left{l, l.Why})
		case Job:
			said, err := cronline.Parse(passed.Replace(l.Command))
			if err == nil && !said.Unlocked && w.Refusal != nil {
				err = w.Refusal(Completed(v.value, l.User, w.Filed), said)
			}
			onLine, j := nameOn(said), nameJob(l, v, !said.Unlocked)
			switch {
			case err != nil:
				why = err.Error()
			case !said.Unlocked && !slices.ContainsFunc(said.Settings, namesPlace.MatchString) && w.isHomeless(l.User, v):
				why = w.homeless(l)
			case !said.Unlocked:
				made, _ := cronline.NameOf(said.Text)
				j.name = cmp.Or(onLine, v.value("ADLOCK_NAME"), made)
				r.Done++
				r.Told = append(r.Told, drawbacks(l, j.name == made)...)
				if onLine == "" { // a person may give one name to several lines
					jobs[l] = j
				}
			}
			taken.add(l, j)
		}
		if why != "" {
			return Result{}, &Left{l, why}
		}
	}
	for i := range lines {
		if why := taken.collision(jobs[&lines[i]]); why != "" {
			return Result{}, &Left{&lines[i], why}
		}
	}
	r.Text = rewritten(lines, (*Line).Text)
	if r.Done > 0 {
		r.Text = withShell(lines, shell)
	}
	return r, nil
}

// nameOn returns the name that a line itself gives to its lock; "": it gives none.
func nameOn(said cronline.Line) string {
	_, after, _ := strings.Cut(" "+strings.Join(said.Settings, " ")+" ", " ADLOCK_NAME=")
	name, _, _ := strings.Cut(after, " ")
	return cmp.Or(said.Name, name)
}

func cannotMove(l *Line) string {
	switch {
	case l.Name == "SHELL" && Guards(l.Value):
		return "is adlock's SHELL already"
	case l.Name == shellVariable:
		return shellVariable + " is set already, and --unwrap would take it for a SHELL of the crontab"
	case l.Name == "SHELL" && !filepath.IsAbs(l.Value):
		return "as " + shellVariable + " it has to be an absolute path"
	}
	return ""
}

func drawbacks(l *Line, isNameMade bool) (all []Left) {
	if part := Background(l.Command); part != "" {
		all = append(all, Left{l, "goes on in the background, where the lock does not cover it: " + cronline.Shown(part)})
	}
	if part := VersionInPath(l.Command); part != "" && isNameMade {
		all = append(all, Left{l, part + ChangesLock + "; name it by hand (: NAME ;)"})
	}
	return all
}

func rewritten(lines []Line, text func(l *Line) string) string {
	var all strings.Builder
	for i := range lines {
		all.WriteString(text(&lines[i]))
	}
	return all.String()
}

func withShell(lines []Line, shell string) string {
	stands := false
	return rewritten(lines, func(l *Line) string {
		text := renamed(l, "SHELL", shellVariable)
		if !stands && (l.Kind == Variable || l.Kind == Job) {
			stands = true
			text = "SHELL=" + shell + "\n" + text
		}
		return text
	})
}

// Unguard undoes Guard. It also takes out a line SHELL that a person has set to adlock's shell. If the jobs below
// that line had another shell (ADLOCK_SHELL) than those above, the line stays and names that shell.
func Unguard(lines []Line) (r Result) {
	guarded, above, jobs := false, defaultShell, defaultShell
	r.Text = rewritten(lines, func(l *Line) string {
		switch {
		case l.Kind == Variable && l.Name == shellVariable:
			if jobs = cmp.Or(l.Value, defaultShell); guarded {
				above = jobs
			}
		case l.Kind == Variable && l.Name == "SHELL":
			guarded = Guards(l.Value)
			switch {
			case !guarded:
				above = l.Value
			case above == jobs:
				return ""
			default:
				above = jobs
				return strings.Replace(l.Text(), l.Value, jobs, 1)
			}
		case l.Kind == Job && guarded && isLocked(l):
			r.Done++
		}
		if guarded {
			return renamed(l, shellVariable, "SHELL")
		}
		return l.Text()
	})
	return r
}

func isLocked(l *Line) bool {
	said, err := cronline.Parse(passed.Replace(l.Command))
	return err != nil || !said.Unlocked
}

func renamed(l *Line, from, to string) string {
	if l.Kind != Variable || l.Name != from {
		return l.Text()
	}
	return strings.Replace(l.Text(), from, to, 1)
}
