package crontab

import (
	"cmp"
	"hash/maphash"
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

// Wrapper puts jobs under locks: by `adlock run` before each (Wrap), or by one SHELL line for all (Guard).
type Wrapper struct {
	Adlock string // the helper's full path
	Limit  string // ExpireAfter for each line, or FromSchedule; "": none
	Flock  bool   // lines under flock(1) are put under adlock too

	// Homeless reports whether a user has no lock directory and can make none in home ("": the user's); nil: never.
	Homeless func(user, home string) bool

	// Filed reports whether a settings file of a user ("": unknown) sets a variable; nil: none does.
	Filed func(user, variable string) bool

	// Refusal is run.LineRefusal: why adlock's SHELL would refuse a line with these variables; nil: not checked.
	Refusal func(variable func(name string) string, l cronline.Line) error

	// RunRefusal is run.Refusal: why `adlock run` would refuse options with these variables; nil: not checked.
	RunRefusal func(variable func(name string) string, options []string) error
}

// FromSchedule is the Limit that derives ExpireAfter from the schedule.
const FromSchedule = "from-schedule"

// variables are those set above a line. Jobs are compared by the hash, as comparing all variables takes quadratic time.
type variables struct {
	values map[string]string
	hash   uint64
}

func noVariables() variables { return variables{values: map[string]string{}} }

func (v *variables) set(l *Line) {
	if before, is := v.values[l.Name]; is {
		v.hash ^= maphash.Comparable(seed, [2]string{l.Name, before})
	}
	v.hash ^= maphash.Comparable(seed, [2]string{l.Name, l.Value})
	v.values[l.Name] = l.Value
}

var seed = maphash.MakeSeed()

func (v variables) value(name string) string { return v.values[name] }

func (v variables) shell() string {
	if shell, set := v.values["SHELL"]; set {
		return shell
	}
	return defaultShell
}

// Result is a crontab whose jobs were put under locks or taken out again (Wrap, Guard and their opposites).
type Result struct {
	Text string
	Done int    // jobs that were put under locks, or taken out
	Left []Left // lines that a person might expect to change, with the reasons
	Told []Left // jobs counted in Done that have a drawback (Why)
}

// Left is a line and what to report about it: why it is not changed, for instance.
type Left struct {
	Line *Line
	Why  string
}

// CanStand reports whether Adlock is a full path that needs no quotes in a crontab and ends in /adlock.
func (w *Wrapper) CanStand() bool {
	return harmlessPath.MatchString(w.Adlock) && filepath.Base(w.Adlock) == "adlock"
}

func (w *Wrapper) Wrap(lines []Line) Result {
	type wrapping struct {
		text, why string
		job       candidate
	}
	all, taken := map[*Line]wrapping{}, names{}
	each(lines, func(l *Line, v variables) (text, why string) {
		text, why = w.wrapped(l, v)
		calls, _ := w.flocks(l, v)
		switch {
		case why != "":
		case len(calls) > 0:
			why = v.keepsFlock(l.with(text), l.Text())
		default:
			why = goesOn(l.Command)
			if cut := l.Cut(v.shell()); cut != nil {
				why = "cron ends the command at its first %, and the shell refuses it: " + cut.Error() + `; write \%`
			}
		}
		j := nameJob(l, v, why == "")
		if j.name != "" && len(calls) > 0 {
			j.name = calls[0].name
		}
		taken.add(l, j)
		all[l] = wrapping{text, why, j}
		return text, why
	})
	var told []Left
	r := each(lines, func(l *Line, _ variables) (text, why string) {
		text, why = all[l].text, cmp.Or(all[l].why, taken.collision(all[l].job))
		if why != "" || lockerOf(l.Command) != "" {
			return text, why // a line under flock has its sleep and its FILE where they were
		}
		if part := VersionInPath(l.Command); part != "" {
			told = append(told, Left{l, part + ChangesLock + "; name it by hand (adlock run --name)"})
		}
		if sleep, longest := l.LongSleep(l.Command); longest > 0 {
			told = append(told, Left{l, "sleeps under the lock from now on: a start that comes meanwhile is skipped; put it before the lock: sleep " + sleep + "; adlock run …"})
		}
		return text, ""
	})
	r.Told = told
	return r
}

func (w *Wrapper) refuses(l *Line, v variables) error {
	if w.RunRefusal == nil {
		return nil
	}
	return w.RunRefusal(Completed(v.value, l.User, w.Filed), []string{"--name", "any"})
}

// Completed returns variable, but with an ADLOCK_WAIT if only a settings file sets one: ADLOCK_WAIT_ELAPSED needs it.
func Completed(variable func(name string) string, user string, filed func(user, variable string) bool) func(name string) string {
	return func(name string) string {
		value := variable(name)
		if value == "" && name == "ADLOCK_WAIT" && filed != nil && filed(user, name) {
			return "forever"
		}
		return value
	}
}

func goesOn(command string) (why string) {
	if part := Background(command); part != "" {
		return "goes on in the background, where the lock would not cover it; run it in the foreground, as cron starts other lines all the same: " + cronline.Shown(part)
	}
	return ""
}

// Unwrap undoes Wrap, whatever path the helper had then.
func Unwrap(lines []Line) Result { return each(lines, unwrapped) }

func each(lines []Line, change func(l *Line, v variables) (text, why string)) (r Result) {
	v := noVariables()
	r.Text = rewritten(lines, func(l *Line) string {
		text, why := l.Text(), ""
		switch l.Kind {
		case Variable:
			v.set(l)
		case Job, Unknown:
			text, why = change(l, v)
		}
		switch {
		case why != "":
			r.Left = append(r.Left, Left{l, why})
			return l.Text()
		case text != l.Text():
			r.Done++
		}
		return text
	})
	return r
}

// lockers lists programs that seem to lock. A job that runs one stays (but see Wrapper.Flock), or it might lock twice.
var lockers = append([]string{"lckdo", "with-lock-ex", "run-one", "solo", "shlock"}, cronline.Lockers...)

// LongestCommand is how many bytes of a command fit into vixie-cron's MAX_COMMAND (1000 bytes; load_entry).
const LongestCommand = 998

// ofDcron matches words before the command that dcron reads itself (its crontab(5)).
var ofDcron = regexp.MustCompile(`^((FREQ|AFTER|WAIT)=\S+[ \t]+)*ID=`)

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
		return "", w.homeless(l)
	}
	if err := w.refuses(l, v); err != nil {
		return "", err.Error()
	}
	text = w.Adlock + " run --name " + nameOf(l.Command) + w.limitOption(l, v) + " -- " + argumentsOf(l.Command, shell)
	if len(calls) > 0 {
		text = w.flocked(l, v, calls)
	}
	text = l.Head + text + l.Input + l.End
	if l.lengthOf(text[len(l.Head):len(text)-len(l.End)]) > LongestCommand {
		return "", "would be longer than the " + strconv.Itoa(LongestCommand) + " bytes that cron takes"
	}
	return text, ""
}

// Length returns how many bytes of a job cron reads as its command.
func (l *Line) Length() int { return l.lengthOf(l.Command + l.Input) }

// lengthOf includes the blanks between the last column and the command, as cron counts them.
func (l *Line) lengthOf(command string) int {
	return len(command) + len(l.Head) - len(strings.TrimRight(l.Head, blanks))
}

func saysToShell(command string) bool {
	line, err := cronline.Parse(command)
	return err != nil || line.Name != "" || len(line.Settings) > 0
}

func (w *Wrapper) homeless(l *Line) string {
	return "user " + strconv.Quote(l.User) + " cannot make a lock directory at home; " + HomeCure(l.User, w.Homeless)
}

func HomeCure(user string, homeless func(user, home string) bool) string {
	if !homeless(user, "") {
		return "leave HOME out, or say ADLOCK_DIR= with the lock directory of " + user + " beside it"
	}
	return "as root: adlock init " + user
}

func (w *Wrapper) isHomeless(user string, v variables) bool {
	return IsHomeless(user, v.value, w.Homeless)
}

// IsHomeless reports whether the user of a crontab line can have no lock directory: homeless returns true for the user
// and HOME, and the variables set neither ADLOCK_DIR nor ADLOCK_STORE. It is false if user is "" (the line names none)
// or homeless is nil.
func IsHomeless(user string, variable func(name string) string, homeless func(user, home string) bool) bool {
	return user != "" && homeless != nil && variable("ADLOCK_DIR")+variable("ADLOCK_STORE") == "" && homeless(user, variable("HOME"))
}

var namesPlace = regexp.MustCompile(`ADLOCK_(DIR|STORE)|--store\b`)

// Homeless returns the users who have jobs that seem to use adlock, but can have no lock directory.
func Homeless(lines []Line, homeless func(user, home string) bool) (users []string) {
	v := noVariables()
	for i := range lines {
		l := &lines[i]
		mentions := Guards(v.value("SHELL")) && isLocked(l) || strings.Contains(l.Command, "adlock")
		switch {
		case l.Kind == Variable:
			v.set(l)
		case l.Kind == Job && mentions && !namesPlace.MatchString(l.Command) && !slices.Contains(users, l.User) && IsHomeless(l.User, v.value, homeless):
			users = append(users, l.User)
		}
	}
	return users
}

// limitOption returns --expire-after and its value, or "". A limit set in the crontab wins over one from the schedule.
func (w *Wrapper) limitOption(l *Line, v variables) string {
	switch {
	case w.Limit == "", w.Limit == FromSchedule && v.value("ADLOCK_EXPIRE_AFTER") != "":
		return ""
	case w.Limit == FromSchedule:
		return expireAfterOption + limit.Format(expireAfter(&l.Schedule))
	}
	return expireAfterOption + w.Limit
}

const expireAfterOption = " --expire-after "

// argumentsOf returns a command as arguments of `adlock run`: a plain one as it is, any other one as SHELL -c
// 'COMMAND'. With another shell than /bin/sh, a plain command gets SHELL -c too: that shell itself runs a script
// without a #! line, but `adlock run` would have /bin/sh run it. A command that begins with SHELL -c gets a second one,
// so that Unwrap removes the right one.
func argumentsOf(command, shell string) string {
	call := shell + " -c "
	if shell == defaultShell && isPlain(command) && !strings.HasPrefix(command, call) {
		return command
	}
	// cron knows no quotes. A backslash that Quoted adds is followed by a quote, never by %.
	return call + fault.Quoted(command)
}

// expireAfter follows the paper: "If dt is the scheduling interval, then ExpireAfter > dt >= IfElapsed ensures correct
// and sensible behaviour", and for "dt 1 hour" "ExpireAfter 1 hour 30 mins". The limit is at least the 15 minutes
// recommended for IfElapsed: otherwise a job that serves a queue each minute would be ended in its second minute.
// IfElapsed stays 0. A longer one, counted from the end of a run, would deny the next start as too soon.
func expireAfter(s *Schedule) time.Duration {
	return max(s.Shortest+s.Shortest/2, 15*time.Minute)
}

// lockerOf returns the program that locks; "" if none does. In a text that no shell understands, each word counts.
func lockerOf(command string) string {
	for _, t := range textsIn(command, calledShell) {
		if t.calls == nil {
			for _, word := range strings.FieldsFunc(t.command, func(c rune) bool { return strings.ContainsRune(" \t;&|()`", c) }) {
				t.calls = append(t.calls, []string{word})
			}
		}
		for _, words := range t.calls {
			if words = cronline.Called(words); len(words) > 0 && slices.Contains(lockers, filepath.Base(words[0])) {
				return filepath.Base(words[0])
			}
		}
	}
	return ""
}

var wrappedForm = regexp.MustCompile(`^(/\S+) run --name \S+(?: --expire-after (\S+))? -- ((?s).*)$`)

// unwrapped returns the job from which Wrap makes exactly this line, or why there is none. Lines without adlock stay.
func unwrapped(l *Line, v variables) (text, why string) {
	for i, form := range []*regexp.Regexp{wrappedForm, flockedForm} {
		found := form.FindStringSubmatch(l.Command)
		if found == nil {
			continue
		}
		w := Wrapper{Adlock: found[1], Limit: found[2], Flock: i == 1}
		for _, command := range commandsOf(found[3], v.shell()) {
			was := l.Head + command + l.Input
			if w.CanStand() && w.wrote(l, was, v) {
				return was + l.End, ""
			}
		}
	}
	if lockerOf(l.Command) == "adlock" {
		return "", "is not as wrap writes it: it was written or edited by hand"
	}
	return l.Text(), ""
}

func commandsOf(arguments, shell string) []string {
	commands := []string{arguments}
	if word, called := strings.CutPrefix(arguments, shell+" -c "); called {
		if inner, ok := unquote(word); ok {
			commands = append(commands, inner)
		}
	}
	return commands
}

func (w *Wrapper) wrote(l *Line, was string, v variables) bool {
	job := l.with(was + l.End)
	if job.Kind != Job {
		return false
	}
	again, why := w.wrapped(job, v)
	return why == "" && again == l.Text()
}
