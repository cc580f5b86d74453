package hot

import (
	"errors"
	"path/filepath"
	"strings"
	"time"

	"adlock/lib/atom"
	"adlock/lib/command"
	"adlock/lib/exit"
	"adlock/lib/lock"
	"adlock/lib/policy"
	"adlock/lib/runlog"
)

// releaseArgs are what the options of release set.
type releaseArgs struct {
	token    string
	status   int // of the job; -1: not told
	retry    bool
	again    bool
	withdraw bool
	pause    time.Duration
}

func (a *releaseArgs) options() []command.Option {
	return []command.Option{
		{Name: "token", Arg: "HEX", Help: "only the acquisition with this token (default: whichever belongs to this process or an ancestor)", Set: command.Text(&a.token)},
		{Name: "status", Arg: "N", Help: "the job's exit status, for the record", Set: command.Number(&a.status, 0, 255)},
		{Name: "retry-failed", Help: "a status other than 0 does not count for IfElapsed", Set: command.Toggle(&a.retry)},
		{Name: "again", Help: "an earlier release may have been cut short: a lock that is gone is released", Set: command.Toggle(&a.again)},
		{Name: "withdraw", Help: "the atom was not run: nothing counts, and a lock that is gone, or not this process's, is none to release", Set: command.Toggle(&a.withdraw)},
		{Name: "pause", Env: "ADLOCK_PAUSE", Arg: "D", Help: "a newcomer that is changing the lock is waited for, four times as long at most (default 3s)", Set: command.Duration(&a.pause)},
	}
}

// ReleaseOptions are the options of release, for the help.
func ReleaseOptions() []command.Option { return new(releaseArgs).options() }

// release gives the lock FILE back.
func release(args []string) (int, error) {
	a := releaseArgs{status: -1, pause: policy.DefaultPause}
	rest, err := command.Parse(a.options(), args)
	if err != nil {
		return 0, err
	}
	if len(rest) != 1 {
		return 0, exit.New(exit.Usage, "release", "wants one FILE")
	}
	files, isLock := strings.CutPrefix(filepath.Base(rest[0]), lock.ActivePrefix)
	parts := strings.Split(files, ".")
	if !isLock || len(parts) < 3 {
		return 0, exit.New(exit.Usage, rest[0], "is not called lock.PROGRAM.HOST.OPERATOR.OPERAND")
	}
	r := atom.Return{Files: files, Token: a.token, NoStamp: a.retry && a.status > 0, Again: a.again, Withdraw: a.withdraw, Patience: 4 * min(a.pause, time.Hour)}
	if a.status >= 0 {
		r.Status = runlog.Some(a.status)
	}
	if err := releaseIn(filepath.Dir(rest[0]), parts[1], r); err == nil || command.Aloud(err, false) {
		return 0, err
	}
	return exit.Denied, nil
}

func releaseIn(path, host string, r atom.Return) error {
	dir, err := lock.Open(path)
	if err != nil {
		return err
	}
	log, err := command.RunlogOf(path, host)
	return errors.Join(err, (&atom.Keeper{Dir: dir, Log: log}).Release(r))
}
