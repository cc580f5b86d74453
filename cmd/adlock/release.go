package main

import (
	"os"
	"time"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/hook"
	"adlock/lib/limit"
	"adlock/lib/lockdir"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/run"
	"adlock/lib/runlog"
	"adlock/lib/sysfile"
)

type releaseArgs struct {
	token    string
	status   int // of the job; -1: unknown
	retry    bool
	again    bool
	withdraw bool
	beside   int // descriptor of a file that the script has locked beside the atom; 0: none
	pause    time.Duration
	hook     hook.Hook
	from     config.Origins
}

func (a *releaseArgs) options() []config.Option {
	options := append([]config.Option{
		{Name: "token", Arg: "HEX", Default: "whichever belongs to this process or an ancestor", Help: "only the acquisition with this token", Set: config.Text(&a.token)},
		{Name: "status", Arg: "N", Help: "the job's exit status, for the runlog", Set: config.Number(&a.status, 0, 255)},
		{Name: "retry-failed", Help: "a status other than 0 does not count for IfElapsed", Set: config.Toggle(&a.retry)},
		{Name: "pause", Env: "ADLOCK_PAUSE", Arg: "D", Help: "a newcomer that is changing the lock is waited for, four times as long at most", Default: limit.Format(a.pause), Set: config.Duration(&a.pause)},
		// These are for adlock.sh, so they have no help. With --again, an earlier release may have been interrupted,
		// so a lock that is gone counts as released. With --withdraw, the atom was not run: nothing is stamped, and no
		// lock, or a lock of another owner, is no error. --beside ends the flock of that descriptor for all processes.
		{Name: "again", Set: config.Toggle(&a.again)},
		{Name: "withdraw", Set: config.Toggle(&a.withdraw)},
		{Name: "beside", Arg: "FD", Set: config.Number(&a.beside, 3, 9)},
	}, config.HookOptions(&a.hook)...)
	// ADLOCK_RETRY_FAILED counts if adlock.sh passes it on for a script, but not in a person's environment.
	return append(options, a.from.Setting([]config.Option{config.Bind("retry-failed", config.Toggle(&a.retry))}))
}

func newRelease() *releaseArgs {
	return &releaseArgs{status: -1, pause: policy.DefaultPause, from: config.Origins{}}
}

var releaseVerb = config.Verb{
	Name: "release", Does: "stamp the last lock and remove the active lock FILE", Args: "FILE",
	Options: func() []config.Option { return newRelease().options() }, Run: release,
}

// release returns 75 without an error if another process is ending the owner, as that has already been reported.
func release(args []string) (int, error) {
	a, dir, r, err := parseRelease(args)
	if err != nil {
		return 0, err
	}
	if a.beside != 0 {
		if err := sysfile.Unlock(a.beside); err != nil {
			fault.Report(fault.Wrap("ADLOCK_FLOCK", err))
		}
	}
	switch err := releaseIn(dir, r, &a.hook); {
	case err == nil && a.withdraw:
		return fault.AnswerGone, nil
	case err == nil || config.ShouldReport(err):
		return 0, err
	}
	return fault.StatusDenied, nil
}

func parseRelease(args []string) (a *releaseArgs, dir string, r locker.ReleaseRequest, err error) {
	a = newRelease()
	options := a.options()
	rest, err := a.from.Parse(options, args)
	if err != nil {
		return a, "", r, err
	}
	if len(rest) != 1 {
		return a, "", r, fault.New(fault.Usage, "release", "wants one FILE")
	}
	dir, name := config.Split(rest[0])
	lock := atom.ParseFile(name)
	if lock.Kind != atom.ActiveLock {
		return a, "", r, fault.New(fault.Usage, rest[0], "is not called lock.PROGRAM.HOST.OPERATOR.OPERAND")
	}
	if err := a.from.Configure(options, run.Options, lock.Name); err != nil {
		return a, "", r, err
	}
	r = locker.ReleaseRequest{Name: lock.Name, Token: a.token, PID: os.Getppid(), NoStamp: a.retry && a.status > 0, Again: a.again, Withdraw: a.withdraw, GuardWait: 4 * min(a.pause, time.Hour), ForScript: true}
	if a.status >= 0 {
		r.Status = runlog.Some(a.status)
	}
	return a, dir, r, nil
}

func releaseIn(path string, r locker.ReleaseRequest, h *hook.Hook) error {
	dir, err := lockfile.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	rec, err := config.RecorderOf(path, r.Name.Host(), h)
	if err != nil { // the lock is released even so, but without an event
		fault.Report(err)
	} else {
		rec.Log.Checked()
	}
	return (&lockdir.Locker{Dir: dir, Recorder: rec}).Release(r)
}
