package config

import (
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"adlock/lib/atom"
	"adlock/lib/fault"
	"adlock/lib/hook"
	"adlock/lib/limit"
	"adlock/lib/live"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/runlog"
	"adlock/lib/sysfile"
)

// Settings are set by the options for taking a lock.
type Settings struct {
	Request  locker.Request
	Verbose  bool
	Hook     *hook.Hook
	InScript bool // the caller is the library, or a crontab: it has variables, and no options
	Library  bool // its arguments IFELAPSED and EXPIREAFTER are minutes if they have no unit
	Remote   bool // the locks are beyond this machine, where adlock status does not look

	SaidExpireAfter, saidWait, saidWaitElapsed Place
}

// defaultStarving is the number of denials in a row that is reported.
const defaultStarving = 10

// Defaults are the settings without any option.
func Defaults() Settings {
	r := locker.NewRequest()
	r.Starving, r.Line = defaultStarving, &live.Line{}
	return Settings{Request: r, Hook: &hook.Hook{}}
}

// Options are the options of `run` and of the library's two verbs.
func (s *Settings) Options() []Option {
	r := &s.Request
	minutes := InEnvironment
	if s.Library {
		minutes = OnCommandLine
	}
	return append([]Option{
		{Name: "if-elapsed", Env: "ADLOCK_IF_ELAPSED", Minutes: minutes, Arg: "D", Default: "0", Help: "do not run sooner than D after the last completion; auto: learn it", Set: learned(Duration(&r.Limits.IfElapsed), &r.Auto.IfElapsed)},
		{Name: "expire-after", Env: "ADLOCK_EXPIRE_AFTER", Minutes: minutes, Arg: "D", Default: "never", Help: "end a job that has run for D and take its place; 0: end a running job at once; auto: learn the limit", Set: learned(s.expireAfter, &r.Auto.ExpireAfter), Said: &s.SaidExpireAfter},
		{Name: "notice", Env: "ADLOCK_NOTICE", Arg: "D", Default: "learned from its past runs, 15m at least", Help: "report a job that has run for D and that no limit ends; never: do not", Set: Duration(&r.Notice)},
		PauseOption(&r.Pause),
		{Name: "wait", Env: "ADLOCK_WAIT", Arg: "D", Help: "wait at most D for a busy or full atom; forever: without end", Set: waitFor(&r.Wait), Said: &s.saidWait},
		{Name: "wait-elapsed", Env: "ADLOCK_WAIT_ELAPSED", Help: "wait for IfElapsed too, within the time of --wait", Set: Toggle(&r.WaitElapsed), Said: &s.saidWaitElapsed},
		{Name: "slots", Env: "ADLOCK_SLOTS", Arg: "N", Help: "at most N atoms of the program at once", Set: Number(&r.Slots, 0, 1000)},
		{Name: "shared", Env: "ADLOCK_SHARED", Help: "hold the atom together with other shared runs: many readers or one writer", Set: Toggle(&r.Shared)},
		{Name: "from-start", Env: "ADLOCK_FROM_START", Help: "IfElapsed, less a tenth (1s to 30s), counts from the start of the last run", Set: Toggle(&r.FromStart)},
		{Name: "starving", Env: "ADLOCK_STARVING", Arg: "N", Help: "report when denied as full N, 10N, 100N times in a row; 0: never", Default: strconv.Itoa(r.Starving), Set: Number(&r.Starving, 0, 1000)},
		{Name: "now", Env: "ADLOCK_NOW", Arg: "EPOCH", Help: "the clock of the whole pass, in seconds since the epoch", Set: Instant(&r.Now)},
		{Name: "verbose", Env: "ADLOCK_VERBOSE", Help: "say which lock was denied, and why", Set: Toggle(&s.Verbose), Inherited: true},
	}, HookOptions(s.Hook)...)
}

// PauseOption is --pause of the verbs that end jobs.
func PauseOption(pause *time.Duration) Option {
	return Option{Name: "pause", Env: "ADLOCK_PAUSE", Arg: "D", Default: limit.Format(*pause), Help: "wait for D between the signals INT, TERM and KILL", Set: Bounded(pause)}
}

func (s *Settings) expireAfter(value string) error {
	s.Request.Limits.Source = policy.Said
	return Duration(&s.Request.Limits.ExpireAfter)(value)
}

// Check refuses settings that contradict each other.
func (s *Settings) Check() error {
	if s.saidWait > s.saidWaitElapsed && s.Request.Wait == 0 {
		s.Request.WaitElapsed = false
	}
	if s.Request.WaitElapsed && s.Request.Wait == 0 {
		return fault.New(fault.Usage, "--wait-elapsed", "wants --wait too (ADLOCK_WAIT), which says how long (forever: without end)")
	}
	return nil
}

// DirectoryOf checks that the name which the shell built is the atom's, and returns the
// lock directory.
func (s *Settings) DirectoryOf(file string) (string, error) {
	if want := s.Request.Atom.Name().ActiveLock(); path.Base(file) != want {
		return "", fault.New(fault.Usage, file, "is not the lock of this atom, which is "+want)
	}
	return path.Dir(file), nil
}

// Answer is the status by which the library learns the verdict.
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
	}
	return fault.AnswerBusy
}

// RunlogOf returns the runlog of a host, whose name is canonical already: in $ADLOCK_LOGDIR, else
// in the lock directory dir; rotated at $ADLOCK_LOG_MAX bytes.
func RunlogOf(dir, host string) (*runlog.Log, error) {
	log := &runlog.Log{Dir: runlogDir(dir), Host: host}
	var most int
	if value := os.Getenv("ADLOCK_LOG_MAX"); value != "" {
		if err := Number(&most, 1, 1<<40)(value); err != nil {
			return nil, &fault.Error{Kind: fault.Usage, Object: "ADLOCK_LOG_MAX", Err: err}
		}
	}
	log.Max = int64(most)
	return log, nil
}

// Host is $ADLOCK_HOST, else the node name.
func Host() (string, error) {
	if host := os.Getenv("ADLOCK_HOST"); host != "" {
		return host, nil
	}
	host, err := sysfile.NodeName()
	return host, fault.Wrap("node name", err)
}

// Tell reports a denial and its reason if a person may read it: a denial is a normal outcome, and
// cron mails all output. dir is the lock directory.
func (s *Settings) Tell(o locker.Outcome, dir string) {
	if !s.Verbose && !sysfile.IsTerminal(2) {
		return
	}
	reason := o.Reason
	if o.Verdict == locker.TooSoon {
		if warning := s.Skipping(dir); warning != "" {
			reason += "; " + warning
		}
	}
	if sysfile.IsTerminal(2) {
		reason += s.nextStep(o)
	}
	fault.Report(fault.New(fault.Denied, locker.Title(s.Request.Atom), reason))
}

// Skipping is policy.Limits.Skipping of the request, as far as the runlog shows how often its
// atom is asked for; "" if there is nothing to report.
func (s *Settings) Skipping(dir string) string {
	log, err := RunlogOf(dir, atom.Canonify(s.Request.Atom.Host))
	if err != nil || s.Request.FromStart {
		return ""
	}
	return s.Request.Limits.Skipping(locker.Recorder{Log: log}.Pace(s.Request.Atom))
}

// nextStep is the advice for a person who was denied: by options, or in a script, which has none,
// by variables.
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

// busyStep names the owner, and the steps that help.
func (s *Settings) busyStep(o locker.Outcome, wait, replace string) string {
	var text string
	if who, since := o.Owner(); who != "" {
		text = "; " + who + ", since " + since.Format(time.DateTime)
	}
	var steps []string
	if !s.Remote {
		steps = append(steps, "adlock status "+string(s.Request.Atom.Name())+" tells more")
	}
	if !o.Inside() && s.Request.Wait == 0 { // else the caller has waited already
		steps = append(steps, wait)
	}
	if o.Endable() && replace != "" {
		steps = append(steps, replace)
	}
	if len(steps) == 0 {
		return text
	}
	return text + "; " + strings.Join(steps, ", ")
}

// Aloud reports whether a failed release must still be reported: the message that a newcomer is
// ending the owner has been printed (locker.Recorder).
func Aloud(err error) bool { return !locker.IsEnded(err) }

// HookOptions are the options of verbs that may have news for the hook.
func HookOptions(h *hook.Hook) []Option {
	return []Option{
		{Name: "hook", Env: "ADLOCK_HOOK", Arg: "COMMAND", Help: "start COMMAND (by sh -c) when a job was ended by force or failed, is stuck or overdue, starves, or its lock was lost", Set: AnyText(&h.Command), Inherited: true},
		{Name: "hook-runs", Env: "ADLOCK_HOOK_RUNS", Help: "start the hook also at the start and the success of each run", Set: Toggle(&h.Runs), Inherited: true},
	}
}
