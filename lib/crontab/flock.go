package crontab

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"adlock/lib/cronline"
)

// flockCall is a call of flock(1) with a command. Wrap replaces flock's own words by `adlock run --flock`. As options
// of flock can be written in many ways, Wrap keeps the old command in a comment, for Unwrap.
type flockCall struct {
	from, to      int // where flock's own words stand in the line: the program, its options, FILE, and -c
	name, options string
	command       string // the command that runs under the lock
}

var (
	// flockHead matches options of flock that `adlock run` has too. Their times may have up to three decimals.
	flockHead = regexp.MustCompile(`^(?:[ \t]+(?:-[nsxe]+|--(?:nb|nonblock(?:ing)?|shared|exclusive)` +
		`|(?:-[nsxe]*w[ \t]*|--(?:wait|timeout)(?:=|[ \t]+))(?:\d{1,9}|\d{0,9}\.\d{1,3})` +
		`|(?:-[nsxe]*E[ \t]*|--conflict-exit-code(?:=|[ \t]+))(?:[01]?\d?\d|2[0-4]\d|25[0-5])))*(?:[ \t]+--)?(?:[ \t]+|$)`)
	flockShort  = strings.NewReplacer("--nonblocking", "n", "--nonblock", "n", "--nb", "n", "--shared", "s", "--exclusive", "x", "--wait", "w", "--timeout", "w", "--conflict-exit-code", "E")
	flockWait   = regexp.MustCompile(`.*w[= \t]*(\d*)(\.\d+)?`)
	flockStatus = regexp.MustCompile(`.*E[= \t]*(\d+)`)

	// oneWord matches exactly one word of a shell. $HOME, $LOGNAME and $USER count, as they rarely have blanks.
	oneWord = regexp.MustCompile("^(?:[^\\s'\"\\\\$`*?[{(]|\\\\.|'[^']*'|\"(?:[^\"\\\\]|\\\\.)*\"|\\$(?:HOME|LOGNAME|USER)\\b|\\$\\{(?:HOME|LOGNAME|USER)\\})+$")
	// noFile matches a FILE that adlock cannot take: it looks like an option, is a device, or is printed by a command.
	noFile = regexp.MustCompile("^['\"\\\\]*-|^['\"]?/dev/[^/]+$|[(`]")

	// changing lists the variables that would change what a line with flock does under `adlock run`.
	changing = strings.Fields("ADLOCK_STORE ADLOCK_SHARED ADLOCK_SLOTS ADLOCK_IF_ELAPSED ADLOCK_EXPIRE_AFTER ADLOCK_ONCE_PER ADLOCK_REPLACE ADLOCK_JITTER ADLOCK_WHOLE_JOB ADLOCK_QUIET_OK ADLOCK_DRY_RUN")
	// others lists programs that would run adlock as another user, in another session, without its
	// environment, or not at all.
	others = strings.Fields("sudo doas runuser chpst sshpass env setsid busybox builtin")
)

const (
	stays = "is under flock already, "
	mark  = " # was: "
)

// flocks returns the calls of flock to replace in a line, or why they stay. It returns neither if w.Flock is false, the
// line is below adlock's SHELL, or flock is not the first program in the line that locks.
func (w *Wrapper) flocks(l *Line, v variables) (all []flockCall, why string) {
	if !w.Flock || lockerOf(l.Command) != "flock" || Guards(v.shell()) {
		return nil, ""
	}
	file, err := Parse(l.Command)
	if err != nil || l.continues() {
		return nil, stays + "in a line that no shell understands"
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		if call, is := n.(*syntax.CallExpr); is && why == "" {
			var f flockCall
			if f, why = readFlock(l.Command, call.Args, v.shell()); f.to > 0 {
				all = append(all, f)
			}
		}
		return true
	})
	if why != "" || len(all) == 0 {
		return nil, stays + cmp.Or(why, "inside another command")
	}
	slices.SortFunc(all, func(a, b flockCall) int { return a.from - b.from })
	for i := range all {
		// Only FILE may exclude other lines, so each call gets a name of its own, made of its line and its number.
		name := nameOf(l.Command + strings.Repeat("\x00", i))
		all[i].name = cronline.Base(all[i].command) + name[strings.LastIndexByte(name, '-'):]
		why = cmp.Or(why, goesOn(all[i].command))
	}
	return all, why
}

// readFlock reads a call of flock, perhaps after a program that starts it. If f.to is 0, adlock cannot replace the
// call, and why is the reason. If why is "" too, args are no call of flock.
func readFlock(line string, args []*syntax.Word, shell string) (f flockCall, why string) {
	words := make([]string, len(args))
	for i, w := range args {
		words[i] = line[w.Pos().Offset():w.End().Offset()]
	}
	called := cronline.Called(words)
	if len(called) == 0 || path.Base(called[0]) != "flock" {
		return f, ""
	}
	args = args[len(words)-len(called):]
	from, end := int(args[0].Pos().Offset()), int(args[len(args)-1].End().Offset())
	options := flockHead.FindString(line[args[0].End().Offset():end])
	last := 1 + len(strings.Fields(options))
	if len(called) < last+2 {
		return f, "with a descriptor, or without a command"
	}
	file, starts := called[last], ""
	if called[last+1] == "-c" || called[last+1] == "--command" {
		last++
		starts = " " + shell + " -c"
	}
	to := int(args[last].End().Offset())
	behind := slices.IndexFunc(words[:len(words)-len(called)], func(word string) bool { return slices.Contains(others, path.Base(word)) })
	switch {
	case behind >= 0:
		return f, "behind " + words[behind]
	case !slices.Equal(strings.Fields(line[from:to]), strings.Fields(strings.Join(called[:last+1], " "))):
		return f, "with a redirection among its words"
	case file[0] == '-':
		return f, "with an option that adlock run does not have, or not with this value: " + file
	case !oneWord.MatchString(file) || noFile.MatchString(file):
		return f, "with a FILE that adlock run does not take as it stands: " + file
	case starts != "" && (len(called) != last+2 || !oneWord.MatchString(called[last+1]) || strings.Contains(line, "SHELL=")):
		return f, "with more or less than one word behind -c, or with a SHELL of its own"
	}
	return flockCall{from: from, to: to, command: starts + line[to:end], options: " --flock " + file + flockOptions(options) + " --" + starts}, ""
}

func flockOptions(text string) (options string) {
	text = flockShort.Replace("E1" + text)
	wait := "forever"
	if found := flockWait.FindStringSubmatch(text); found != nil {
		wait = cmp.Or(found[1], "0") + found[2] + "s"
	}
	if strings.Contains(text, "n") { // -n wins over any -w
		wait = "0"
	}
	if strings.LastIndex(text, "s") > strings.LastIndexAny(text, "xe") {
		options = " --shared"
	}
	return options + " --wait " + wait + " -E " + flockStatus.FindStringSubmatch(text)[1]
}

// keepsFlock returns why a line stays under flock although `adlock run` has all its options of flock; "" if the line
// need not stay. l is the line under adlock, was its present text.
func (v variables) keepsFlock(l *Line, was string) (why string) {
	if i := slices.IndexFunc(changing, func(name string) bool { return v.value(name) != "" }); i >= 0 {
		return stays + "and under adlock run " + changing[i] + " would change what it does"
	}
	if back, _ := unwrapped(l, v); back != was {
		return stays + "and could not be taken out again"
	}
	return ""
}

func (w *Wrapper) flocked(l *Line, v variables, calls []flockCall) (text string) {
	at := 0
	for _, f := range calls {
		text += l.Command[at:f.from] + w.Adlock + " run --name " + f.name + w.limitOption(l, v) + f.options
		at = f.to
	}
	return text + l.Command[at:] + mark + l.Command
}

var flockedForm = regexp.MustCompile(`(/[\w./+@-]+) run --name \S+(?: --expire-after (\S+))? --flock .*?` + mark + `((?s).*)$`)
