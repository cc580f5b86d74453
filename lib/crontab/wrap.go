package crontab

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"adlock/lib/cronline"
	"adlock/lib/fault"
	"adlock/lib/limit"
)

// Wrapper puts jobs under `adlock run`, and takes them out again. A wrapped line needs no mark: it
// is recognised by wrapping the job in it again and comparing.
type Wrapper struct {
	Adlock string // the helper's full path
	Limit  string // ExpireAfter for each line, or FromSchedule; "": none
	Flock  bool   // lines under flock(1) too

	// Homeless reports whether a user cannot have a lock directory in home ("": the user's own
	// home), so that the jobs would not run under adlock. nil: no user is homeless.
	Homeless func(user, home string) bool
}

// FromSchedule is the Limit that derives a job's ExpireAfter from its schedule (expireAfter).
const FromSchedule = "from-schedule"

// variables are the variables of the crontab that hold for a line.
type variables map[string]string

func (v variables) shell() string {
	if shell, set := v["SHELL"]; set {
		return shell
	}
	return defaultShell
}

// Result is a crontab after Wrap or Unwrap.
type Result struct {
	Text string
	Done int    // lines that were changed
	Left []Left // lines that a person might expect to change, with the reasons
	Told []Left // changed lines with a drawback, which Why says
}

// Left is a line with what is to be told of it: in general, why it is not changed.
type Left struct {
	Line *Line
	Why  string
}

// CanStand reports whether the helper's path can be in a crontab as it is.
func (w *Wrapper) CanStand() bool {
	return harmlessPath.MatchString(w.Adlock) && filepath.Base(w.Adlock) == "adlock"
}

// Wrap puts each job under adlock that can be.
func (w *Wrapper) Wrap(lines []Line) Result {
	jobs := map[int]candidate{}
	change := func(i int, v variables) (text, why string) {
		l := &lines[i]
		text, why = w.wrapped(l, v)
		calls, _ := w.flocks(l, v)
		switch {
		case why != "":
		case len(calls) > 0:
			why = v.keepsFlock(l.with(text), l.Text())
		default:
			why = goesOn(l.Command)
		}
		if j, is := nameJob(l, v, why == ""); is {
			if len(calls) > 0 {
				j.name = calls[0].name
			}
			jobs[i] = j
		}
		return text, why
	}
	each(lines, change)
	var told []Left
	r := each(lines, func(i int, v variables) (text, why string) {
		if text, why = change(i, v); why == "" {
			why = collision(lines, jobs, i)
		}
		if part := Stamp(lines[i].Command); part != "" && why == "" {
			told = append(told, Left{&lines[i], part + Stamped + "; name it by hand (adlock run --name)"})
		}
		return text, why
	})
	r.Told = told
	return r
}

// goesOn is why a command that goes on in the background is left; "": it does not.
func goesOn(command string) (why string) {
	if part := Background(command); part != "" {
		return "goes on in the background, where the lock would not cover it; run it in the foreground, as cron starts other lines all the same: " + part
	}
	return ""
}

// Unwrap undoes Wrap, whatever path the helper had then.
func Unwrap(lines []Line) Result {
	return each(lines, func(i int, v variables) (string, string) {
		return unwrapped(&lines[i], v)
	})
}

// each changes each line that is a job, or tells why it is left.
func each(lines []Line, change func(i int, v variables) (text, why string)) Result {
	var r Result
	var text strings.Builder
	v := variables{}
	for i := range lines {
		l := &lines[i]
		changed, why := l.Text(), ""
		switch l.Kind {
		case Variable:
			v[l.Name] = l.Value
		case Job, Unknown:
			changed, why = change(i, v)
		}
		switch {
		case why != "":
			r.Left = append(r.Left, Left{l, why})
			changed = l.Text()
		case changed != l.Text():
			r.Done++
		}
		text.WriteString(changed)
	}
	r.Text = text.String()
	return r
}

// lockers are programs whose jobs seem to be under a lock already. In doubt a line is not wrapped:
// the user gets a report of it, while a needless second lock would not be noticed.
var lockers = append([]string{"lckdo", "with-lock-ex", "run-one", "solo", "shlock"}, cronline.Lockers...)

// LongestCommand is what vixie-cron takes: it reads a command into MAX_COMMAND (1000)
// bytes, and refuses one that fills them (load_entry).
const LongestCommand = 998

// ofDcron are words that dcron takes between the schedule and the command (its crontab(5)).
var ofDcron = regexp.MustCompile(`^((FREQ|AFTER|WAIT)=\S+[ \t]+)*ID=`)

// wrapped returns a job's line under adlock, or why the line is left as it is.
func (w *Wrapper) wrapped(l *Line, v variables) (text, why string) {
	shell := v.shell()
	calls, why := w.flocks(l, v)
	switch locker := lockerOf(l.Command); {
	case l.Kind == Unknown:
		return "", l.Why
	case why != "":
		return "", why
	case locker != "" && len(calls) == 0:
		return "", "is under " + locker + " already"
	case Guards(shell):
		return "", "is under adlock already, by SHELL=" + strconv.Quote(shell)
	case ofDcron.MatchString(l.Command):
		return "", "begins with ID=, which dcron reads itself; write adlock run behind that"
	case saysToShell(l.Command):
		return "", "says a name or a limit to adlock's own SHELL, which would be lost"
	case l.Schedule.Reboot && w.Limit != "":
		return "", "starts at boot: it may be meant to run for ever, and is not to be ended"
	case l.Schedule.Shortest == 0 && !l.Schedule.Reboot:
		return "", "never starts: there is no such day"
	case !quotes(shell):
		return "", "is run by SHELL=" + strconv.Quote(shell) + ", of whose quotes nothing is known"
	case w.isHomeless(l.User, v):
		return "", homeless(l)
	}
	text = w.Adlock + " run --name " + nameOf(l.Command) + w.option(l, v) + " -- " + argumentsOf(l.Command, shell)
	if len(calls) > 0 {
		text = w.flocked(l, v, calls)
	}
	text = l.Head + text + l.Input + l.End
	if l.lengthOf(text[len(l.Head):len(text)-len(l.End)]) > LongestCommand {
		return "", "would be longer than the " + strconv.Itoa(LongestCommand) + " bytes that cron takes"
	}
	return text, ""
}

// Length is how many bytes of a job cron reads as its command.
func (l *Line) Length() int { return l.lengthOf(l.Command + l.Input) }

// lengthOf is the Length if that is the command with its input. The blanks before it count too, as
// they are what follows the user column.
func (l *Line) lengthOf(command string) int {
	return len(command) + len(l.Head) - len(strings.TrimRight(l.Head, blanks))
}

// saysToShell reports whether a command begins with words for adlock, as it may below a SHELL=
// that guards it.
func saysToShell(command string) bool {
	line, err := cronline.Parse(command)
	return err != nil || line.Name != "" || len(line.Settings) > 0
}

func homeless(l *Line) string {
	return "user " + strconv.Quote(l.User) + " cannot make a lock directory at home; as root: adlock init " + l.User
}

func (w *Wrapper) isHomeless(user string, v variables) bool {
	return IsHomeless(user, func(name string) string { return v[name] }, w.Homeless)
}

// IsHomeless reports whether the user of a line, whose variables are those, can have no lock
// directory: homeless (nil: no user is) tells that of a user with a HOME.
func IsHomeless(user string, variable func(name string) string, homeless func(user, home string) bool) bool {
	return user != "" && homeless != nil && variable("ADLOCK_DIR")+variable("ADLOCK_STORE") == "" && homeless(user, variable("HOME"))
}

// Homeless returns the users in a user column who have jobs that seem to lock with adlock, but can
// have no lock directory (homeless reports that).
func Homeless(lines []Line, homeless func(user, home string) bool) (users []string) {
	for i := range lines {
		l := &lines[i]
		setting := func(name string) string { value, _ := Setting(lines, i, name); return value }
		if l.Kind == Job && Mentions(lines, i) && !strings.Contains(l.Command, "ADLOCK_DIR") && !slices.Contains(users, l.User) && IsHomeless(l.User, setting, homeless) {
			users = append(users, l.User)
		}
	}
	return users
}

// Mentions reports whether a line seems to lock with adlock.
func Mentions(lines []Line, i int) bool {
	shell, _ := Setting(lines, i, "SHELL")
	return Guards(shell) || strings.Contains(lines[i].Command, "adlock")
}

// option returns the option that gives a job its limit. A limit from the schedule does not replace
// one that the crontab sets.
func (w *Wrapper) option(l *Line, v variables) string {
	switch {
	case w.Limit == "", w.Limit == FromSchedule && v["ADLOCK_EXPIRE_AFTER"] != "":
		return ""
	case w.Limit == FromSchedule:
		return expireAfterOption + limit.Format(expireAfter(&l.Schedule))
	}
	return expireAfterOption + w.Limit
}

const expireAfterOption = " --expire-after "

// argumentsOf returns a command as arguments of `adlock run`. Most commands become SHELL -c
// 'COMMAND'. A plain command stays as it is, with two exceptions. With another shell than the
// default, its program may be a script without a #! line, which that shell would run itself. And a
// command that already begins with SHELL -c gets a second SHELL -c around it, so that Unwrap
// removes the right one.
func argumentsOf(command, shell string) string {
	call := shell + " -c "
	if shell == defaultShell && isPlain(command) && !strings.HasPrefix(command, call) {
		return command
	}
	// cron handles backslashes and % inside the quotes as before, as it does not know quotes. A
	// backslash that Quoted adds is followed by a quote, not by %.
	return call + fault.Quoted(command)
}

// Limits from the schedule. "If dt is the scheduling interval (the interval at which you expect to
// re-run atoms), then ExpireAfter > dt >= IfElapsed ensures correct and sensible behaviour", and
// for "dt 1 hour" the paper recommends "ExpireAfter 1 hour 30 mins": one and a half times the
// shortest time between two starts. It is no less than the 15 minutes recommended for IfElapsed
// ("ExpireAfter should generally be greater"): otherwise a job that serves a queue and starts each
// minute would be ended in its second minute, and "the aim is to give the atoms a chance to
// complete their work". IfElapsed stays 0: it counts from the end of a run, and one that took most
// of its interval would make the next start too soon.
func expireAfter(s *Schedule) time.Duration {
	return max(s.Shortest+s.Shortest/2, 15*time.Minute)
}

// lockerOf is the program in a command that locks; "" if there is none. If no shell understands the
// command, each of its words counts.
func lockerOf(command string) string {
	all := calls(command)
	if all == nil {
		for _, word := range strings.FieldsFunc(command, func(c rune) bool { return strings.ContainsRune(" \t;&|()`", c) }) {
			all = append(all, []string{word})
		}
	}
	for _, words := range all {
		if words = cronline.Called(words); len(words) == 0 {
			continue
		}
		if base := filepath.Base(words[0]); slices.Contains(lockers, base) {
			return base
		}
		if text, ok := cronline.ShellText(words); ok && lockerOf(text) != "" {
			return lockerOf(text)
		}
	}
	return ""
}

// wrappedForm is a command as wrapped writes it: path, name, limit or none, arguments.
var wrappedForm = regexp.MustCompile(`^(/\S+) run --name \S+(?: --expire-after (\S+))? -- ((?s).*)$`)

// unwrapped returns a job's line as it was before it was wrapped. If two commands may have been
// wrapped, the one that would give exactly this line is taken.
func unwrapped(l *Line, v variables) (text, why string) {
	found := wrappedForm.FindStringSubmatch(l.Command)
	if found != nil {
		w := Wrapper{Adlock: found[1], Limit: found[2]}
		for _, command := range commandsOf(found[3], v.shell()) {
			was := l.Head + command + l.Input
			if w.CanStand() && w.wrote(l, was, v) {
				return was + l.End, ""
			}
		}
	}
	if found = flockedForm.FindStringSubmatch(l.Command); found != nil {
		w := Wrapper{Adlock: found[1], Limit: found[2], Flock: true}
		was := l.Head + found[3] + l.Input
		if w.CanStand() && w.wrote(l, was, v) {
			return was + l.End, ""
		}
	}
	if lockerOf(l.Command) == "adlock" {
		return "", "is not as wrap writes it: it was written or edited by hand"
	}
	return l.Text(), ""
}

// commandsOf returns the commands from which argumentsOf may have made these arguments.
func commandsOf(arguments, shell string) []string {
	commands := []string{arguments}
	if word, called := strings.CutPrefix(arguments, shell+" -c "); called {
		if inner, ok := unquote(word); ok {
			commands = append(commands, inner)
		}
	}
	return commands
}

// wrote reports whether wrapping the job that was there would have given this line.
func (w *Wrapper) wrote(l *Line, was string, v variables) bool {
	job := l.with(was + l.End)
	if job.Kind != Job {
		return false
	}
	again, why := w.wrapped(job, v)
	return why == "" && again == l.Text()
}
