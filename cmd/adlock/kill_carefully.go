package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"adlock/lib/app"
	"adlock/lib/command"
	"adlock/lib/exit"
	"adlock/lib/limit"
	"adlock/lib/lock"
	"adlock/lib/policy"
	"adlock/lib/process"
)

func killCarefullyVerb() *cli.Command {
	return app.Verb("kill-carefully", "end processes with all that they started: CONT INT TERM KILL", "PID... | --lock FILE",
		[]cli.Flag{
			&cli.StringFlag{Name: "pause", EnvVars: []string{"ADLOCK_PAUSE"}, Value: limit.Format(policy.DefaultPause), Usage: "`D`: after INT, TERM and KILL"},
			&cli.BoolFlag{Name: "dry-run", Usage: "list what would be signalled"},
			&cli.BoolFlag{Name: "lock", Usage: "end the owner of the lock FILE; the next newcomer takes its place"},
		}, killCarefully)
}

func killCarefully(c *cli.Context) error {
	pause, err := limit.Parse(c.String("pause"))
	if err != nil {
		return &exit.Error{Code: exit.Usage, Object: "--pause", Err: err}
	}
	if !c.Args().Present() {
		return exit.New(exit.Usage, "kill-carefully", "wants a PID, or --lock FILE")
	}
	if c.Bool("lock") {
		return endOwner(c, pause)
	}
	jobs, err := jobsOf(c.Args().Slice())
	if err != nil {
		return err
	}
	var failed error
	for _, job := range jobs {
		failed = errors.Join(failed, endJob(c, job, pause))
	}
	return failed
}

// jobsOf reads every pid before the first signal is sent: a slip in the last
// one must not cost the first its life. One that is gone already is no error:
// its death is what was asked for.
func jobsOf(pids []string) ([]process.Job, error) {
	var jobs []process.Job
	for _, text := range pids {
		if strings.HasPrefix(text, "-") {
			return nil, exit.New(exit.Usage, text, "options come before the PIDs")
		}
		pid, err := command.PID(text)
		if err != nil {
			return nil, err
		}
		if !process.PIDLives(pid) {
			continue
		}
		id, err := process.Of(pid)
		var thread *process.ThreadError
		switch {
		case errors.As(err, &thread):
			return nil, &exit.Error{Code: exit.Usage, Object: text, Err: thread}
		case err != nil:
			return nil, exit.Wrap("process "+text, err)
		}
		jobs = append(jobs, process.Job{Owner: id, FileUID: -1})
	}
	return jobs, nil
}

func endJob(c *cli.Context, job process.Job, pause time.Duration) error {
	object := fmt.Sprintf("process %d", job.Owner.PID)
	if c.Bool("dry-run") {
		return listJob(c, object, job)
	}
	return killed(object, process.Killer{Pause: pause}.End(job))
}

func listJob(c *cli.Context, object string, job process.Job) error {
	members, err := job.Members()
	if err != nil {
		return killed(object, err)
	}
	for _, m := range members {
		if _, err := fmt.Fprintf(c.App.Writer, "%d\t%s\n", m.PID, exit.Plain(m.Command)); err != nil {
			return exit.Wrap("standard output", err)
		}
	}
	return nil
}

// killed gives what could not be ended its status: 77.
func killed(object string, err error) error {
	if err == nil {
		return nil
	}
	return &exit.Error{Code: exit.NotPermitted, Object: object, Err: err}
}

func endOwner(c *cli.Context, pause time.Duration) error {
	if c.NArg() != 1 {
		return exit.New(exit.Usage, "--lock", "wants one FILE")
	}
	file := c.Args().First()
	files, isLock := strings.CutPrefix(filepath.Base(file), lock.ActivePrefix)
	if !isLock {
		return exit.New(exit.Usage, file, "is not called lock.NAME")
	}
	dir, err := lock.Open(filepath.Dir(file))
	if err != nil {
		return err
	}
	defer dir.Close()
	if c.Bool("dry-run") {
		return listOwner(c, dir, files)
	}
	k, err := keeperOf(dir, files)
	if err != nil {
		return err
	}
	return k.End(files, pause)
}

func listOwner(c *cli.Context, dir *lock.Dir, files string) error {
	active, err := dir.Active(files)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer active.Close()
	return listJob(c, active.Path(), active.Job())
}
