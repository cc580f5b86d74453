package command

import (
	"bytes"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/exit"
	"adlock/lib/lock"
	"adlock/lib/name"
	"adlock/lib/policy"
	"adlock/lib/runlog"
)

// Settings are what the options of taking a lock set.
type Settings struct {
	Request atom.Request
	Verbose bool
}

// defaultStarving is how many denials in a row are news.
const defaultStarving = 10

// Defaults are the settings where nothing is said.
func Defaults() Settings {
	return Settings{Request: atom.Request{
		Limits: policy.Limits{ExpireAfter: policy.DefaultExpireAfter},
		Pause:  policy.DefaultPause, Starving: defaultStarving,
	}}
}

// Options are the options of `run` and of the library's two verbs alike.
func (s *Settings) Options() []Option {
	r := &s.Request
	return []Option{
		{Name: "if-elapsed", Env: "ADLOCK_IF_ELAPSED", Arg: "D", Help: "not sooner than D after the last completion; auto: learn it (default 0)", Set: Learned(Duration(&r.Limits.IfElapsed), &r.Auto.IfElapsed)},
		{Name: "expire-after", Env: "ADLOCK_EXPIRE_AFTER", Arg: "D", Help: "end a job that has run for D and take over; auto: learn it (default 2h)", Set: Learned(Given(&r.Limits.ExpireAfter, &r.Limits.Explicit), &r.Auto.ExpireAfter)},
		{Name: "pause", Env: "ADLOCK_PAUSE", Arg: "D", Help: "between the signals INT, TERM and KILL (default 3s)", Set: Duration(&r.Pause)},
		{Name: "wait", Env: "ADLOCK_WAIT", Arg: "D", Help: "wait at most D for a busy or full atom", Set: Duration(&r.Wait)},
		{Name: "wait-elapsed", Env: "ADLOCK_WAIT_ELAPSED", Help: "wait for IfElapsed too", Set: Toggle(&r.WaitElapsed)},
		{Name: "slots", Env: "ADLOCK_SLOTS", Arg: "N", Help: "at most N atoms of the program at once", Set: Number(&r.Slots, 0, 1000)},
		{Name: "shared", Env: "ADLOCK_SHARED", Help: "hold the atom together with others that say so: many readers or one writer", Set: Toggle(&r.Shared)},
		{Name: "from-start", Env: "ADLOCK_FROM_START", Help: "IfElapsed counts from the start of the last run", Set: Toggle(&r.FromStart)},
		{Name: "starving", Env: "ADLOCK_STARVING", Arg: "N", Help: "say it aloud when denied as busy or full N times in a row; 0: never (default 10)", Set: Number(&r.Starving, 0, 1000)},
		{Name: "now", Env: "ADLOCK_NOW", Arg: "EPOCH", Help: "the clock of the whole pass, in seconds since the epoch", Set: Instant(&r.Now)},
		{Name: "verbose", Env: "ADLOCK_VERBOSE", Help: "say why the lock was denied", Set: Toggle(&s.Verbose), Inherited: true},
	}
}

// OpenKeeper opens the lock directory, making it on first use, and the record.
func OpenKeeper(path, host string) (*atom.Keeper, error) {
	dir, err := lock.Create(path)
	if err != nil {
		return nil, err
	}
	log, err := RunlogOf(path, name.Canonify(host))
	return &atom.Keeper{Dir: dir, Log: log}, err
}

// RunlogOf returns the record of a host, whose name is canonical already: in
// $ADLOCK_LOGDIR, else in the lock directory dir; turned over at $ADLOCK_LOG_MAX
// bytes.
func RunlogOf(dir, host string) (*runlog.Log, error) {
	log := &runlog.Log{Dir: dir, Host: host}
	if elsewhere := os.Getenv("ADLOCK_LOGDIR"); elsewhere != "" {
		log.Dir = elsewhere
	}
	var most int
	if value := os.Getenv("ADLOCK_LOG_MAX"); value != "" {
		if err := Number(&most, 1, 1<<40)(value); err != nil {
			return nil, &exit.Error{Code: exit.Usage, Object: "ADLOCK_LOG_MAX", Err: err}
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
	var system unix.Utsname
	if err := unix.Uname(&system); err != nil {
		return "", exit.Wrap("node name", err)
	}
	host, _, _ := bytes.Cut(system.Nodename[:], []byte{0})
	return string(host), nil
}

// Tell says why a lock was denied, where somebody is there to read it: a denial
// is nothing wrong, and cron mails whatever is said.
func (s *Settings) Tell(o atom.Outcome) {
	if s.Verbose || isTerminal(2) {
		exit.Report(exit.New(exit.Denied, s.Request.Atom.Operator+" "+s.Request.Atom.Operand, o.Reason))
	}
}

// Aloud says whether a failed release is worth a line. An owner that a newcomer
// is ending is denied like any other, and the record has it; any other loss is
// said, as nobody had the right to that lock.
func Aloud(err error, verbose bool) bool {
	return verbose || isTerminal(2) || !errors.Is(err, lock.ErrGuarded)
}

func isTerminal(fd int) bool {
	_, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
	return err == nil
}

// PrintLine writes one line to standard output.
func PrintLine(text string) error {
	_, err := os.Stdout.WriteString(text + "\n")
	return exit.Wrap("standard output", err)
}
