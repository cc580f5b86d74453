package lint

import (
	"cmp"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"adlock/lib/config"
	"adlock/lib/cronline"
	"adlock/lib/crontab"
	"adlock/lib/limit"
	"adlock/lib/policy"
)

func (c *Checker) isCommand(word string) bool {
	return cronline.IsShellWord(word) || c.isProgram(word)
}

func (c *Checker) isProgram(name string) bool {
	return c.findIn(name, append(filepath.SplitList(c.CronPath), c.Elsewhere...)) != ""
}

func (c *Checker) findIn(name string, dirs []string) string {
	if filepath.IsAbs(name) {
		dirs = []string{"/"}
	}
	for _, dir := range dirs {
		file := filepath.Join(dir, name)
		if filepath.Dir(file) == filepath.Clean(dir) && !c.lists(dir, name) {
			continue
		}
		if info, err := os.Stat(file); err == nil && filepath.IsAbs(file) && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file
		}
	}
	return ""
}

// lists reports whether dir has an entry of that name. It reads a directory only once, for any number of programs.
func (c *Checker) lists(dir, name string) bool {
	names, is := c.listed[dir]
	if !is {
		entries, _ := os.ReadDir(dir) // an unreadable directory lists nothing
		names = map[string]bool{}
		for _, entry := range entries {
			names[entry.Name()] = true
		}
		c.listed[dir] = names
	}
	return names[name]
}

type job struct {
	*Checker
	*findings
	*crontab.Line
	*tab

	variables uint64 // hash of the variables that are set above the job
	command   string // as the shell gets it
	file      *syntax.File
}

func (j *job) runsAs() string { return j.userOf(j.Line) } // "": unknown

func (t *tab) userOf(l *crontab.Line) string { return cmp.Or(l.User, t.user) }

func (j *job) isFiled(variables ...string) bool { return j.Checker.isFiled(j.runsAs(), variables...) }

func (c *Checker) isFiled(user string, variables ...string) bool {
	return c.Filed != nil && slices.ContainsFunc(variables, func(variable string) bool { return c.Filed(user, variable) })
}

func (c *Checker) jobs(t *tab) []Mistake {
	f := findings{known: map[Mistake]bool{}}
	f.form(c, t)
	f.overruled(t.lines)
	isUnlimited, isUnguarded := c.isUnlimited(t), unguarded(t.lines)
	for i := range t.lines {
		switch l := &t.lines[i]; l.Kind {
		case crontab.Job:
			j := job{Checker: c, findings: &f, Line: l, tab: t, variables: t.distinct}
			j.check()
		case crontab.Variable:
			t.see(l)
			f.noSetting(c, l.Number, l.Name)
			f.unexpanded(l)
			if isUnguarded {
				f.noShell(c, l)
			}
			if isLimit(l.Name) {
				f.unitless(l.Number, l.Value)
			}
			if l.Name == "ADLOCK_ENFORCE" && isUnlimited && isOn(l.Value) {
				f.unenforced(l.Number)
			}
		}
	}
	return f.all
}

func (c *Checker) isUnlimited(t *tab) (jobs bool) {
	for i := range t.lines {
		l := &t.lines[i]
		text := l.Text()
		switch {
		case l.Kind == crontab.Comment:
		case strings.Contains(text, "EXPIRE_AFTER"), strings.Contains(text, "expire-after"):
			return false
		case l.Kind != crontab.Job:
		case c.isFiled(t.userOf(l), "ADLOCK_EXPIRE_AFTER"):
			return false
		default:
			jobs = true
		}
	}
	return jobs
}

func isLimit(variable string) bool {
	o := config.OfVariable(variable)
	return o != nil && o.Minutes > config.Unsaid
}

func (j *job) check() {
	j.namesUser()
	shell, set := j.setting("SHELL")
	j.absent("SHELL")
	if crontab.Guards(shell) {
		j.absent("ADLOCK_SHELL")
	}
	if set && !cronline.IsShell(shell) && !crontab.Guards(shell) {
		return
	}
	j.command = strings.ReplaceAll(j.Command, `\%`, "%")
	file, err := crontab.Parse(j.command)
	own := cmp.Or(j.variable("ADLOCK_SHELL"), shell, "sh")
	if cut := j.Cut(own); cut != nil && (cronline.IsShell(own) || crontab.Guards(own)) {
		j.add(j.Number, "a command cut at %", "cron ends the command at the first %, and the shell refuses it: "+cut.Error(), `write \%`)
	}
	if err != nil {
		return
	}
	j.file = file
	locked := crontab.Guards(shell) && j.guarded()
	if !crontab.Guards(shell) {
		j.unguarded()
	}
	j.outside(file.Stmts)
	calls(file, func(call *syntax.CallExpr) {
		j.noVerb(call)
		j.noAdlock(call.Args)
		if !locked {
			j.blocks(call)
		}
		if v := j.readInvocation(call); v != nil && !j.isRefused(v) {
			j.locks(v)
		}
	})
}

func (j *job) isRefused(v *invocation) bool {
	known := j.environment(v)
	switch {
	case known == nil:
	case v.has("enforce") && j.isFiled("ADLOCK_EXPIRE_AFTER"):
		known = nil
	default:
		known = crontab.Completed(known, j.runsAs(), j.Filed)
	}
	why := j.refusal(v, known, j.option(v, "if-elapsed"), j.option(v, "expire-after"))
	if why != "" {
		j.add(j.Number, "an option that is refused", "the job is never run: "+why, "adlock run --help lists the options")
	}
	return why != ""
}

// environment returns what the line and the crontab set for a call; nil if that is unknown.
func (j *job) environment(v *invocation) func(name string) string {
	said := map[string]string{}
	for _, a := range v.call.Assigns {
		text, whole := literal(a.Value)
		if a.Name == nil || a.Value != nil && !whole {
			return nil
		}
		said[a.Name.Value] = text
	}
	return func(name string) string {
		if value, is := said[name]; is {
			return value
		}
		return j.variable(name)
	}
}

func (j *job) locks(v *invocation) {
	ifElapsed := j.option(v, "if-elapsed")
	d, _ := durationOf(ifElapsed)
	if d != limit.Never {
		j.changes(v.named())
		j.deploys(v)
	}
	j.noAdlock(v.command)
	j.within(v)
	j.background(v)
	j.builtin(v)
	j.assignment(v)
	if v.program == "flock" {
		j.sleeps(v)
		j.sharesFile(v)
	}
	if v.program != "adlock" {
		return
	}
	for _, name := range []string{"if-elapsed", "expire-after"} {
		if text, whole := literal(j.own(v, name)); whole {
			j.unitless(j.Number, text)
		}
	}
	if !ignored.MatchString(j.Text()) {
		j.shares(v)
		j.directory(v)
		if !j.vanishes(v) {
			j.moved(v)
		}
		j.locksFile(v)
	}
	j.untold(v)
	j.dryRun(v)
	j.sleeps(v)
	j.crowds(v)
	j.limits(v, ifElapsed, j.option(v, "expire-after"))
	j.interval(v, d)
	j.days(v)
	j.endsLate(v)
	j.unnamed(v)
	j.apart(v)
	j.homeless(v)
	for _, a := range v.call.Assigns {
		if a.Name != nil {
			j.noSetting(j.Checker, j.Number, a.Name.Value)
		}
	}
}

func (j *job) builtin(v *invocation) {
	for _, words := range [][]*syntax.Word{v.command, unwrapped(v.command)} {
		name := wordOf(words)
		if !cronline.IsShellWord(name) || j.isProgram(name) {
			continue
		}
		j.add(j.Number, "a command of the shell's own", "there is no program "+name+": the job is never run", "say "+v.program+" … sh -c '"+name+" …'")
		return
	}
}

func (j *job) assignment(v *invocation) {
	word := wordOf(v.command)
	if !cronline.IsAssignment(word) || strings.ContainsAny(word, " \t") { // a word with blanks is the command line of flock -c
		return
	}
	j.add(j.Number, "an assignment as the command", v.program+" takes "+cronline.Shown(word)+" for the command: the job is never run", "write it before "+v.program)
}

func (j *job) dryRun(v *invocation) {
	said, _ := literal(j.option(v, "dry-run"))
	if v.has("dry-run") || isOn(said) {
		j.add(j.Number, "a dry run", "it prints what adlock would do, and the job is never run", "leave out --dry-run (ADLOCK_DRY_RUN)")
	}
}

func (j *job) apart(v *invocation) {
	store, _ := literal(j.option(v, "store"))
	if !config.IsRemote(store) || j.option(v, "host") != nil {
		return
	}
	wrong, cure := config.NoHost(store)
	j.add(j.Number, "a store without a host", wrong, cure)
}

// option returns the value of an option by its name: its word in the call, or else its variable in the line or
// the crontab. It is nil if none is set, or for a switch in the call.
func (j *job) option(v *invocation, name string) *syntax.Word {
	if word := j.own(v, name); word != nil || v.has(name) {
		return word
	}
	if o := config.Find(j.Options, "--"+name); o != nil {
		if value, set := j.setting(o.Env); set {
			return quoted(value)
		}
	}
	return nil
}

// own returns the word of an option, or its variable's value in the line; nil if not set, or for a switch in the call.
func (j *job) own(v *invocation, name string) *syntax.Word {
	if v.has(name) {
		return v.options[name]
	}
	o := config.Find(j.Options, "--"+name)
	for _, a := range v.call.Assigns {
		if o != nil && a.Name != nil && a.Name.Value == o.Env {
			return cmp.Or(a.Value, quoted(""))
		}
	}
	return nil
}

func (j *job) interval(v *invocation, d time.Duration) {
	if d <= 0 || j.mayBeOn(v, "from-start") || (policy.Limits{IfElapsed: d}).Skipping(policy.Pace{Period: j.Schedule.Shortest}) == "" {
		return
	}
	j.add(j.Number, "an interval as long as the period", "it starts every "+limit.Format(j.Schedule.Shortest)+", and IfElapsed "+limit.Format(d)+
		" counts from completion: every second start is denied", "say --from-start (ADLOCK_FROM_START=1), or a shorter interval")
}

// days reports days of --once-per that begin in another time zone than the schedule's.
func (j *job) days(v *invocation) {
	d, _ := durationOf(j.option(v, "once-per"))
	if d <= 0 || d%(24*time.Hour) != 0 || j.Differs == nil || j.environment(v) == nil || j.environment(v)("TZ") != "" {
		return
	}
	const reason, cure = "a day of --once-per begins at midnight of the machine's time zone, not of ", "set TZ above the line"
	switch zone, _ := j.setting("CRON_TZ"); {
	case zone != "" && j.Differs(zone):
		j.add(j.Number, "days of another time zone", reason+"CRON_TZ="+zone, cure)
	case zone == "" && j.Zone != "" && j.Differs(j.Zone):
		j.add(j.Number, "note", reason+"TZ="+j.Zone+", which is set here", cure)
	}
}

// farApart is the ratio of period to limit from which the limit alone helps little: only the next start applies it.
const farApart = 4

func (j *job) endsLate(v *invocation) {
	d, _ := durationOf(j.option(v, "expire-after"))
	period := j.Schedule.Shortest
	if d <= 0 || d == limit.Never || period/farApart < d || j.mayBeOn(v, "enforce") || j.isSemaphore(v) {
		return
	}
	j.add(j.Number, "note", "ends only at the next start, in "+limit.Format(period), "ADLOCK_ENFORCE=1 ends it after "+limit.Format(d))
}

func (j *job) mayBeOn(v *invocation, name string) bool {
	word := j.option(v, name)
	if word == nil {
		return v.has(name) || j.isFiled(config.Find(j.Options, "--"+name).Env)
	}
	text, whole := literal(word)
	on := text != "" || !whole
	return config.Toggle(&on)(text) != nil || on
}

func (j *job) unnamed(v *invocation) {
	if v.has("name") || v.has("operand") || j.option(v, "name") != nil || j.option(v, "operand") != nil || len(v.command) == 0 {
		return
	}
	if text, whole := literal(v.command[0]); whole && text != "" && text[0] != '/' {
		j.add(j.Number, "a lock without a name", "of a command that is no full path the directory is a part of the lock's name: by hand, from elsewhere, it is another lock",
			"say --name NAME")
	}
}

// outside reports commands that seem to be under the lock of the command before them, but are not.
func (j *job) outside(list []*syntax.Stmt) {
	for i, stmt := range list {
		j.outsideOf(stmt)
		if i+1 < len(list) && !stmt.Background {
			j.unlocked(stmt, list[i+1], ";")
		}
	}
}

func (j *job) outsideOf(stmt *syntax.Stmt) {
	list, ok := stmt.Cmd.(*syntax.BinaryCmd)
	if !ok {
		return
	}
	j.outsideOf(list.X)
	if list.Op != syntax.OrStmt {
		j.unlocked(list.X, list.Y, list.Op.String())
	}
}

// unlocked reports that behind runs without the lock of locked, though it may seem otherwise. It skips a
// command in tellers (echo, mail, rm), which seldom needs the lock, and a command with its own lock.
func (j *job) unlocked(locked, behind *syntax.Stmt, operator string) {
	one, other := callOf(last(locked)), callOf(first(behind))
	if one == nil || other == nil {
		return
	}
	v, word := j.invocationOf(one), wordOf(unwrapped(other.Args))
	name := path.Base(word)
	if v == nil || word == "" || word == "." || slices.Contains(tellers, name) || j.invocationOf(other) != nil {
		return
	}
	inner := "what"
	if text := wordOf(v.command); text != "" {
		inner = path.Base(text)
	}
	j.add(j.Number, "only the first is locked", v.program+" holds the lock while "+inner+" runs, and "+operator+" "+name+" runs without it",
		"say "+v.program+" … sh -c '…' for both")
}

var tellers = []string{":", "[", "test", "true", "false", "exit", "echo", "printf", "logger", "mail", "mailx", "mutt", "sendmail", "curl", "wget", "ping",
	"touch", "date", "tee", "ts", "cat", "grep", "egrep", "fgrep", "sed", "awk", "gawk", "mawk", "head", "tail", "tr", "cut", "sort", "uniq", "wc", "systemd-cat",
	"sleep", "kill", "rm", "adlock"}

func last(stmt *syntax.Stmt) *syntax.Stmt {
	if list, is := stmt.Cmd.(*syntax.BinaryCmd); is {
		return last(list.Y)
	}
	return stmt
}

func first(stmt *syntax.Stmt) *syntax.Stmt {
	if list, is := stmt.Cmd.(*syntax.BinaryCmd); is && list.Op != syntax.Pipe && list.Op != syntax.PipeAll {
		return first(list.X)
	}
	return stmt
}

func wordOf(words []*syntax.Word) string {
	if len(words) > 0 {
		if text, whole := literal(words[0]); whole {
			return text
		}
	}
	return ""
}
