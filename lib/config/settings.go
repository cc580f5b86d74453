package config

import (
	"cmp"
	"math"
	"os"
	"strings"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/hook"
	"adlock/lib/limit"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/runlog"
	"adlock/lib/sysfile"
)

// Settings are what the options for acquiring a lock set, and what the verb says of itself (InScript to MayFlock).
type Settings struct {
	Request  locker.Request
	Verbose  bool
	Hook     *hook.Hook
	InScript bool // a denial's advice names variables, not options: for adlock.sh, a crontab and adlock hold
	Library  bool // a number without a unit means minutes in the arguments IFELAPSED and EXPIREAFTER
	Remote   bool // the locks are in a store beyond this machine
	MayFlock bool // a process keeps a file locked beside the atom while its job lives
	tick     string
	flock    string

	From Origins // where the options were set
}

// Defaults returns the settings without any option.
func Defaults() Settings {
	r := locker.NewRequest()
	r.Starving, r.StatusLine = defaultStarving, &locker.StatusLine{}
	return Settings{Request: r, Hook: &hook.Hook{}, From: Origins{}}
}

// Options returns the options of every verb that acquires a lock.
func (s *Settings) Options() []Option {
	r := &s.Request
	limits := []Option{
		Bind("if-elapsed", learned(Duration(&r.Limits.IfElapsed), &r.Auto.IfElapsed)),
		Bind("expire-after", learned(s.expireAfter, &r.Auto.ExpireAfter)),
	}
	for i := range limits {
		if s.Library {
			limits[i].Minutes = OnCommandLine
		}
	}
	return append(append(limits,
		Bind("notice", notice(&r.Notice)),
		Bind("pause", Bounded(&r.Pause)),
		Bind("wait", waitFor(&r.Wait)),
		Bind("wait-elapsed", Toggle(&r.WaitElapsed)),
		Bind("slots", Number(&r.Slots, 0, 1000)),
		Bind("shared", Toggle(&r.Shared)),
		Bind("from-start", Toggle(&r.FromStart)),
		Bind("starving", Number(&r.Starving, 0, 1000)),
		Bind("now", passClock(&r.Now)),
		Bind("verbose", Toggle(&s.Verbose)),
	), HookOptions(s.Hook)...)
}

// notice is Duration, but turns 0 into the least time that a record keeps: in a Request, 0 means that no notice is set.
func notice(to *time.Duration) func(string) error {
	set := Duration(to)
	return func(value string) error {
		err := set(value)
		*to = max(*to, time.Millisecond)
		return err
	}
}

// ScriptOptions returns options, and those by which adlock.sh passes on what a script has set for its locks. RefuseTick
// and Check refuse settings that have no effect on a lock without a command.
func (s *Settings) ScriptOptions(options []Option) []Option {
	options = append(options, Bind("once-per", Text(&s.tick)), Bind("flock", Text(&s.flock)))
	return append(options, s.From.Setting(options),
		Option{Name: "since", Arg: "UPTIME", Set: Since(&s.Request.WaitSince)})
}

// RefuseTick refuses ADLOCK_ONCE_PER for a lock that a script takes by itself, which counts no ticks.
func (s *Settings) RefuseTick() error {
	const why = "is for adlock run: a lock that a script takes by itself counts no ticks"
	switch {
	case s.tick == "" || s.tick == "0":
		return nil
	case s.From.IsFiled("once-per"):
		return fault.New(fault.Usage, s.From["once-per"].Word, "ADLOCK_ONCE_PER "+why)
	}
	return fault.New(fault.Usage, "ADLOCK_ONCE_PER", why+" (unset it)")
}

func (s *Settings) expireAfter(value string) error {
	limits := &s.Request.Limits
	if err := Duration(&limits.ExpireAfter)(value); err != nil {
		return err
	}
	if limits.Source = policy.Said; s.From.IsFiled("expire-after") {
		limits.Source = policy.Filed
	}
	return nil
}

// Configure is Origins.Configure for the request, whose atom must be known.
func (s *Settings) Configure(options []Option, values func() []Option) error {
	return s.From.Configure(options, values, s.Request.Atom.Name())
}

// checkSemaphore lets the runs of a name with slots share its lock. Options that make no sense for such runs are
// an error, or are ignored if a settings file has set them.
func (s *Settings) checkSemaphore() error {
	r := &s.Request
	if !r.IsSemaphore() {
		return nil
	}
	preempts := "expire-after"
	if s.From[preempts].Place == Unsaid {
		preempts = "replace"
	}
	for _, o := range []struct {
		name string
		set  bool
	}{
		{"if-elapsed", r.Limits.IfElapsed > 0 || r.Auto.IfElapsed}, {"once-per", r.Tick.Asked()}, {preempts, r.Limits.Preempt()},
	} {
		if o.set && !s.From.IsFiled(o.name) {
			return fault.New(fault.Usage, cmp.Or(s.From.Name(o.name), "--"+o.name), "cannot go with --slots of one name: the runs share the lock")
		}
	}
	r.Shared, r.Limits.IfElapsed, r.Auto.IfElapsed, r.Tick = true, 0, false, policy.Tick{}
	if r.Limits.Preempt() {
		r.Limits.ExpireAfter, r.Limits.Source = limit.Never, policy.None
	}
	return nil
}

// refuseFlock refuses ADLOCK_FLOCK for a lock beside which no process would keep the file locked.
func (s *Settings) refuseFlock() error {
	filed := FromFiles(s.Request.Atom.Name())[flockVariable]
	if s.MayFlock || s.flock == "" && os.Getenv(flockVariable) == "" && filed.Value == "" {
		return nil
	}
	return fault.New(fault.Usage, cmp.Or(filed.From.Word, flockVariable), "a file is locked only for a command: adlock run, adlock_with, a guard of a script that has a path")
}

// Check refuses settings that contradict each other or need another one. Without a wait, it drops a --wait-elapsed that
// is from a file, or weaker than --wait 0.
func (s *Settings) Check() error {
	if err := cmp.Or(s.checkSemaphore(), s.refuseFlock()); err != nil {
		return err
	}
	if (s.From.IsFiled("wait-elapsed") || s.From.Compare("wait", "wait-elapsed") > 0) && s.Request.Wait == 0 {
		s.Request.WaitElapsed = false
	}
	if s.Request.WaitElapsed && s.Request.Wait == 0 {
		return fault.New(fault.Usage, "--wait-elapsed", "wants --wait too (ADLOCK_WAIT), which says how long (forever: without end)")
	}
	return nil
}

// DirectoryOf returns the directory of file. It is an error if file is not this atom's active lock.
func (s *Settings) DirectoryOf(file string) (string, error) {
	dir, name := Split(file)
	if want := s.Request.Atom.Name().ActiveLock(); name != want {
		return "", fault.New(fault.Usage, file, "is not the lock of this atom, which is "+want)
	}
	return dir, nil
}

// Split returns the directory and the name of a file. path.Dir would take ".." out of the text, but the kernel goes up
// from where a link leads. For the same reason a path in a lock directory is made without path.Join.
func Split(file string) (dir, name string) {
	slash := strings.LastIndexByte(file, '/')
	if slash < 0 {
		return ".", file
	}
	return file[:max(slash, 1)], file[slash+1:]
}

// Answer returns the exit status by which adlock.sh learns the verdict.
func Answer(v locker.Verdict) int {
	switch v {
	case locker.Acquired:
		return fault.StatusOK
	case locker.Expired:
		return fault.AnswerExpired
	case locker.TooSoon:
		return fault.AnswerTooSoon
	case locker.Full:
		return fault.AnswerFull
	case locker.Paused:
		return fault.AnswerPaused
	}
	return fault.AnswerBusy
}

// RunlogOf returns the runlog of a canonical host: in the directory that ADLOCK_LOGDIR sets, else in dir.
func RunlogOf(dir, host string) (*runlog.Log, error) {
	elsewhere, err := head(logDirVariable)
	if err != nil {
		return nil, err
	}
	log := &runlog.Log{Dir: cmp.Or(Trim(elsewhere.Value), dir), Apart: elsewhere.Value != "", Host: host}
	if own, err := ownDir(os.Geteuid()); err != nil || dir != own {
		log.Locks = dir
	}
	value, _ := head(logMaxVariable) // head fails only for a Location
	log.Max, err = LogMax(value.Value)
	return log, err // the caller can record the error in the log
}

// LogMax returns the size in bytes that a value of ADLOCK_LOG_MAX means; 0 for "".
func LogMax(value string) (int64, error) {
	var most int
	if value == "" {
		return 0, nil
	}
	if err := logMax(&most)(value); err != nil {
		return 0, &fault.Error{Kind: fault.Usage, Object: logMaxVariable, Err: err}
	}
	return int64(most), nil
}

// RecorderOf returns a recorder with the hook (nil: none) and the runlog of RunlogOf, and RunlogOf's error.
func RecorderOf(dir, host string, h *hook.Hook) (locker.Recorder, error) {
	log, err := RunlogOf(dir, host)
	if h != nil && h.Command != "" {
		h.Env = Environment()
	}
	return locker.Recorder{Log: log, Hook: h}, err
}

func logMax(most *int) func(string) error { return Number(most, 1, min(1<<40, math.MaxInt)) }

// Tell prints a denial only on a terminal or with Verbose: denials are normal, and cron would mail them.
func (s *Settings) Tell(o locker.Outcome, dir string) {
	if s.Request.Inside(o) || !s.Verbose && !sysfile.IsTerminal(2) { // a denial by its own job has been reported
		return
	}
	reason := o.Reason
	if o.Verdict == locker.TooSoon {
		if warning := s.Skipping(dir); warning != "" {
			reason += "; " + warning
		}
	}
	if owner := o.Owner(); owner != "" && o.Verdict == locker.Busy && !o.IsFile() {
		reason += "; " + owner + o.User()
		if s.Request.Now.IsZero() { // an age by a pass clock tells no date
			reason += ", since " + o.Since(time.Now()).Format(time.DateTime)
		}
	}
	if sysfile.IsTerminal(2) {
		reason += s.nextStep(o)
	}
	fault.Report(fault.New(fault.Denied, locker.Title(s.Request.Atom), reason))
}

// Skipping returns the warning of policy.Limits.Skipping, at the pace of requests in the runlog of dir. It returns ""
// if there is no warning, or the runlog cannot be read.
func (s *Settings) Skipping(dir string) string {
	log, err := RunlogOf(dir, atom.Canonify(s.Request.Atom.Host))
	if err != nil || s.Request.FromStart {
		return ""
	}
	return s.Request.Limits.Skipping(locker.Recorder{Log: log}.Pace(s.Request.Atom))
}

// nextStep returns what to do about a denial, by options or, for a script, variables; "" if there is nothing to do.
func (s *Settings) nextStep(o locker.Outcome) string {
	wait, replace, anyway := "--wait D waits", "--replace ends it", "; --if-elapsed 0 runs it all the same"
	if s.InScript {
		wait, replace, anyway = "ADLOCK_WAIT=D waits", "", ""
	}
	switch o.Verdict {
	case locker.Busy:
		return s.busyStep(o, wait, replace)
	case locker.Full:
		if s.Request.Wait > 0 {
			return ""
		}
		return "; " + wait
	case locker.TooSoon:
		if o.Endless {
			anyway = strings.Replace(anyway, "--if-elapsed", "--once-per", 1)
		}
		return anyway
	}
	return ""
}

func (s *Settings) busyStep(o locker.Outcome, wait, replace string) string {
	var steps []string
	if !s.Remote && !o.IsFile() {
		steps = append(steps, "adlock status "+string(s.Request.Atom.Name())+" tells more")
	}
	if s.Request.Wait == 0 && !o.Endless { // otherwise the caller has already waited, or waiting is useless
		steps = append(steps, wait)
	}
	if o.IsFile() {
		steps = append(steps, "fuser -v, as its user or root, names what has it open")
	}
	if o.Endable() && replace != "" && !o.Endless && !s.Request.Limits.Preempt() {
		steps = append(steps, replace)
	}
	if len(steps) == 0 {
		return ""
	}
	return "; " + strings.Join(steps, ", ")
}

// ShouldReport is false for the error of an owner that is being ended by force, as locker.Recorder prints that error.
func ShouldReport(err error) bool { return !locker.IsEnded(err) }

func HookOptions(h *hook.Hook) []Option {
	return []Option{
		Bind("hook", AnyText(&h.Command)),
		Bind("hook-runs", Toggle(&h.Runs)),
		Bind("syslog", Toggle(&h.Syslog)),
	}
}
