package hot

import (
	"path/filepath"

	"adlock/lib/atom"
	"adlock/lib/command"
	"adlock/lib/exit"
	"adlock/lib/lock"
	"adlock/lib/name"
)

// The private statuses by which the library's verbs answer adlock_get: a script
// must not need `$(…)`, which would put another process between it and the
// helper.
const (
	statusTooSoon = 10
	statusBusy    = 11
	statusFull    = 12
	statusExpired = 13
	statusStuck   = 14 // said aloud; the script gets 77
)

// take is what the options of the library's verbs set.
type take struct {
	command.Settings
	owner  int  // pid of the owner-to-be; 0: the parent
	dryRun bool // only list whom kill-carefully would end: main's
}

func (s *take) options() []command.Option {
	options := append(s.Settings.Options(),
		command.Option{Name: "owner", Arg: "PID", Set: command.Number(&s.owner, 1, 1<<30)},
		command.Option{Name: "since", Arg: "UPTIME", Set: command.Uptime(&s.Request.WaitSince)})
	if s.Request.LeaveExpired {
		return options
	}
	return append(options, command.Option{Name: "dry-run", Set: command.Toggle(&s.dryRun)})
}

// mkatomicLock takes the lock FILE for the shell that asks (adlock.sh), and says
// where the owner has expired. The form without --lock is main's.
func mkatomicLock(args []string) (int, error) { return takeFile(args, true) }

// killCarefullyLock is the second step of adlock_get: it ends the owner that has
// expired and replaces its lock. With FILE alone, or --dry-run, it is main's.
func killCarefullyLock(args []string) (int, error) { return takeFile(args, false) }

func takeFile(args []string, leaveExpired bool) (int, error) {
	if len(args) == 0 || args[0] != "--lock" {
		return 0, errNotHere
	}
	s := take{Settings: command.Defaults()}
	s.Request.LeaveExpired = leaveExpired
	rest, err := command.Parse(s.options(), args[1:])
	if err != nil {
		return 0, err
	}
	if !leaveExpired && (s.dryRun || len(rest) == 1) {
		return 0, errNotHere
	}
	if len(rest) != 5 {
		return 0, exit.New(exit.Usage, "--lock", "wants FILE PROGRAM HOST OPERATOR OPERAND")
	}
	if s.Request.Atom, err = name.New(rest[1], rest[2], rest[3], rest[4]); err != nil {
		return 0, err
	}
	return s.lock(rest[0])
}

func (s *take) lock(file string) (int, error) {
	path, err := s.directoryOf(file)
	if err != nil {
		return 0, err
	}
	if s.Request.Wait > 0 || !s.Request.LeaveExpired {
		exit.OnQuit()
	}
	if s.Request.Owner, err = atom.OwnedBy(s.owner); err != nil {
		return 0, err
	}
	k, err := command.OpenKeeper(path, s.Request.Atom.Host)
	if err != nil {
		return 0, err
	}
	outcome, err := k.Take(s.Request)
	if outcome.Verdict == atom.Stuck {
		return statusStuck, err
	}
	if err != nil {
		return 0, err
	}
	switch outcome.Verdict {
	case atom.Acquired:
		return exit.OK, nil
	case atom.Expired:
		return statusExpired, nil
	}
	s.Tell(outcome)
	switch outcome.Verdict {
	case atom.TooSoon:
		return statusTooSoon, nil
	case atom.Full:
		return statusFull, nil
	}
	return statusBusy, nil
}

// directoryOf checks that the name which the shell built is the atom's, and
// returns the lock directory. "-" leaves the name to the helper.
func (s *take) directoryOf(file string) (string, error) {
	if file == "-" {
		return lock.DefaultDir()
	}
	if want := lock.ActivePrefix + s.Request.Atom.Name(); filepath.Base(file) != want {
		return "", exit.New(exit.Usage, file, "is not the lock of this atom, which is "+want)
	}
	return filepath.Dir(file), nil
}
