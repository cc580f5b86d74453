package main

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/killer"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/locker"
	"adlock/lib/policy"
	"adlock/lib/process"
	"adlock/lib/sysfile"
)

var killCarefullyVerb = config.Verb{
	Name: "kill-carefully", Does: "end processes with all that they started: CONT INT TERM KILL", Args: "PID... | --lock FILE",
	Options: func() []config.Option { return newKill().options() }, Run: killCarefully,
}

type killArgs struct {
	pause  time.Duration
	dryRun bool
	lock   bool
}

func newKill() *killArgs { return &killArgs{pause: policy.DefaultPause} }

func (a *killArgs) options() []config.Option {
	return []config.Option{
		config.Bind("pause", config.Bounded(&a.pause)),
		{Name: "dry-run", Help: "list what would be signalled", Set: config.Toggle(&a.dryRun)},
		{Name: "lock", Help: "end the owner of the lock FILE; the next newcomer takes its place", Set: config.Toggle(&a.lock)},
	}
}

func killCarefully(args []string) (int, error) {
	a := newKill()
	objects, err := config.Parse(a.options(), args)
	if err != nil {
		return 0, err
	}
	fault.OnQuit()
	return 0, a.end(objects)
}

func (a *killArgs) end(objects []string) error {
	if len(objects) == 0 {
		return fault.New(fault.Usage, "kill-carefully", "wants a PID, or --lock FILE")
	}
	if a.lock {
		return a.endOwner(objects)
	}
	jobs, err := jobsOf(objects)
	if err != nil {
		return err
	}
	var failed error
	for _, job := range jobs {
		failed = errors.Join(failed, a.endJob(job))
	}
	return failed
}

// jobsOf returns a job for each living process. All pids are read before the first signal, as a mistake in the last one
// must end no process. A dead process is reported only on a terminal, where a person may mistype a pid.
func jobsOf(pids []string) ([]process.Job, error) {
	var jobs []process.Job
	for _, text := range pids {
		if strings.HasPrefix(text, "-") {
			return nil, fault.New(fault.Usage, text, "options come before the PIDs")
		}
		var pid int
		if err := config.Number(&pid, 1, 1<<30)(text); err != nil {
			return nil, err
		}
		if !process.PIDLives(pid) {
			if sysfile.IsTerminal(2) {
				fault.Report(fault.New(fault.Unavailable, "process "+text, "no such process"))
			}
			continue
		}
		id, err := process.Of(pid)
		var thread *process.ThreadError
		switch {
		case errors.As(err, &thread):
			return nil, &fault.Error{Kind: fault.Usage, Object: text, Err: thread}
		case err != nil:
			return nil, fault.Wrap("process "+text, err)
		}
		jobs = append(jobs, process.Job{Owner: id, FileUID: -1})
	}
	return jobs, nil
}

func (a *killArgs) endJob(job process.Job) error {
	object := processTitle(job.Owner.PID)
	if a.dryRun {
		return sysfile.IgnoreMissing(listJob(object, job)) // the process may have died since jobsOf found it
	}
	return killed(object, killer.Killer{Pause: a.pause}.End(job))
}

func processTitle(pid int) string { return "process " + strconv.Itoa(pid) }

func listJob(object string, job process.Job) error {
	members, err := killer.Members(job)
	if err == nil {
		err = killer.Endable(job)
	}
	if err != nil {
		return killed(object, err)
	}
	if len(members) == 0 {
		return fs.ErrNotExist
	}
	for _, m := range members {
		if err := config.PrintLine(strconv.Itoa(m.PID) + "\t" + fault.Plain(m.Command)); err != nil {
			return err
		}
	}
	return nil
}

// listOwner prints the processes that would be signalled. It returns fs.ErrNotExist if no job holds the lock.
func listOwner(dir *lockfile.Dir, lock atom.File) error {
	active, err := dir.Lock(lock)
	if err != nil {
		return err
	}
	defer active.Close()
	return listJob(active.Path(), active.Job())
}

func killed(object string, err error) error {
	if err == nil {
		return nil
	}
	var stuck *process.StuckError
	if errors.As(err, &stuck) && stuck.Command+stuck.User == "" && object == processTitle(stuck.PID) {
		err = stuck.Err
	}
	return &fault.Error{Kind: fault.NotPermitted, Object: object, Err: err}
}

func (a *killArgs) endOwner(locks []string) error {
	if len(locks) != 1 {
		return fault.New(fault.Usage, "--lock", "wants one FILE")
	}
	file := locks[0]
	above, name := config.Split(file)
	lock := atom.ParseFile(name)
	if lock.Kind != atom.ActiveLock && lock.Kind != atom.ReaderLock {
		return fault.New(fault.Usage, file, "is not called lock.PROGRAM.HOST.OPERATOR.OPERAND")
	}
	dir, err := lockfile.Open(above)
	if err == nil {
		defer dir.Close()
		err = a.endOwnerIn(dir, lock)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, missing := os.Lstat(file); missing != nil { // if the lock exists, its owner is dead
		fault.Warn(file, "no such lock: there is no owner to end")
	}
	return nil
}

func (a *killArgs) endOwnerIn(dir *lockfile.Dir, lock atom.File) error {
	if a.dryRun {
		return listOwner(dir, lock)
	}
	k, err := lockerOf(dir, lock.Name, nil)
	if err != nil {
		return err
	}
	self, err := process.Of(os.Getpid())
	if err != nil {
		return fault.Wrap("own process", err)
	}
	return k.Stop(&locker.Request{Pause: a.pause, Owner: self}, lock, true)
}
