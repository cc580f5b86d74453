package main

import (
	"errors"
	"io/fs"
	"time"

	"adlock/lib/atom"
	"adlock/lib/config"
	"adlock/lib/fault"
	"adlock/lib/lockdir/lockfile"
	"adlock/lib/process"
)

// leftVerb (left [--wait] TOKEN FILE) is called after adlock.sh has ended a command. It exits with 75 if processes with
// the job's mark are or may be left. With --wait, it waits until these or the owner are gone, and exits with 0.
var leftVerb = config.Verb{Name: "left", Run: func(args []string) (int, error) {
	wait := len(args) == 3 && args[0] == "--wait"
	if wait {
		args = args[1:]
	}
	if len(args) != 2 {
		return 0, config.LibraryOnly("left")
	}
	job, err := jobUnder(args[0], args[1])
	if err != nil || job == nil {
		return 0, err
	}
	const least, most = 10 * time.Millisecond, time.Second
	told := false
	for pause := least; ; pause = min(2*pause, most) {
		left, err := job.Left()
		if err != nil && !told {
			fault.Report(err)
			told = true
		}
		switch {
		case err == nil && !left, wait && job.Owner.Life() == process.Dead:
			return 0, nil
		case !wait:
			return fault.StatusDenied, nil
		}
		time.Sleep(pause)
	}
}}

// jobUnder returns the job with this token that holds the lock at path or a reader's lock of the same atom, else nil.
func jobUnder(token, path string) (*process.Job, error) {
	above, name := config.Split(path)
	dir, err := lockfile.Open(above)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	file := atom.ParseFile(name)
	readers, err := dir.Readers(file.Name)
	if err != nil {
		return nil, err
	}
	for _, file := range append(readers, file) {
		lock, err := dir.Lock(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		job := lock.Job()
		lock.Close()
		if job.Token == token {
			return &job, nil
		}
	}
	return nil, nil
}
