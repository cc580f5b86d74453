package main

import (
	"strconv"
	"strings"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/flock"
	"adlock/lib/lockdir"
	"adlock/lib/locker"
	"adlock/lib/run"
)

// take and takeover acquire a lock for the shell, as mkatomic and kill-carefully do in the 1997 paper. take
// reports an owner that has expired; takeover ends that owner and replaces its lock.
var (
	takeVerb     = config.Verb{Name: "take", Owned: true, Run: func(args []string) (int, error) { return takeFile("take", args, true) }}
	takeoverVerb = config.Verb{Name: "takeover", Owned: true, Run: func(args []string) (int, error) { return takeFile("takeover", args, false) }}
)

type take struct {
	config.Settings
	owner  int    // pid of the owner-to-be
	beside string // DESCRIPTOR:FILE of the file that the script locks beside the atom; "": none
}

func (s *take) options() []config.Option {
	return append(s.ScriptOptions(append(s.Settings.Options(), config.Bind("retry-failed", config.Toggle(new(bool))))),
		config.Option{Name: "owner", Arg: "PID", Set: config.Number(&s.owner, 1, 1<<30)},
		config.Option{Name: "beside", Arg: "FD:FILE", Set: config.Text(&s.beside)})
}

func takeFile(verb string, args []string, leaveExpired bool) (int, error) {
	s, file, err := parseTake(verb, args, leaveExpired)
	if err != nil {
		return 0, err
	}
	path, err := s.DirectoryOf(file)
	if err != nil {
		return 0, err
	}
	config.TellMistakes(path, run.Options)
	if s.Request.Wait > 0 || !s.Request.LeaveExpired {
		fault.OnQuit()
	}
	if s.Request.Owner, err = locker.OwnedBy(s.owner); err != nil {
		return 0, err
	}
	outcome, err := s.lockIn(path)
	if outcome.Verdict == locker.Stuck {
		return fault.AnswerStuck, err
	}
	if err != nil {
		return 0, s.notRun(path, err) // with the error's own status, which no verdict has
	}
	return config.Answer(outcome.Verdict), nil
}

func parseTake(verb string, args []string, leaveExpired bool) (s *take, file string, err error) {
	s = &take{Settings: config.Defaults()}
	s.Request.LeaveExpired, s.InScript, s.Library = leaveExpired, true, true
	options := s.options()
	rest, err := s.From.Parse(options, args)
	if err != nil {
		return nil, "", config.ForScript(options, err)
	}
	if len(rest) != 5 {
		return nil, "", config.LibraryOnly(verb)
	}
	if s.Request.Atom, err = atom.New(rest[1], rest[2], rest[3], rest[4]); err != nil {
		return nil, "", err
	}
	return s, rest[0], config.ForScript(options, s.configure(options))
}

// configure adds the atom's settings from settings files and the file of --beside, and checks all settings.
func (s *take) configure(options []config.Option) error {
	if err := s.Configure(options, run.Options); err != nil {
		return err
	}
	if err := s.RefuseTick(); err != nil {
		return err
	}
	if fd, file, given := strings.Cut(s.beside, ":"); given {
		number, err := strconv.Atoi(fd)
		if err != nil {
			return config.LibraryOnly("take")
		}
		s.MayFlock, s.Request.Flock = true, flock.Inherited(number, file, s.Request.Shared)
	}
	return s.Check()
}

func (s *take) notRun(path string, why error) error {
	rec, _ := config.RecorderOf(path, atom.Canonify(s.Request.Atom.Host), s.Hook) // without a runlog, why is still reported
	return rec.NotRun(&s.Request, path, locker.Outcome{}, why)
}

func (s *take) lockIn(path string) (locker.Outcome, error) {
	rec, err := config.RecorderOf(path, atom.Canonify(s.Request.Atom.Host), s.Hook)
	if err != nil {
		return locker.Outcome{}, err
	}
	k, err := lockdir.Open(path, rec)
	if err != nil {
		return locker.Outcome{}, err
	}
	defer k.Dir.Close()
	outcome, err := k.Take(s.Request)
	if err == nil && outcome.Verdict != locker.Acquired && outcome.Verdict != locker.Expired {
		s.Tell(outcome, path)
	}
	return outcome, err
}
