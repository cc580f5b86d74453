// Package idle tells whether a job works: it watches what its processes do for a while. A limit
// that was learned from runtimes alone cannot tell a long run from one that hangs; whether the
// job does anything can.
//
// A sign of work is a member of the job that is running, in uninterruptible sleep, stopped or
// traced when it is looked at; that takes more processor time than a runtime that only waits;
// that reads or writes; that was started or has ended. What cannot be read counts as work.
//
// It does not see what no process of the job does: services elsewhere (a database, the far end of
// ssh), the GPU; nor bytes by send(2) and recv(2) alone, which /proc/PID/io does not count, nor
// that a long sleep is intended. A loop that tries again and again looks like work.
package idle

import (
	"errors"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/process"
	"adlock/lib/sysfile"
)

// How long a job is watched: as long as a run of it typically takes, within these bounds.
// Variables for tests.
var (
	Shortest = time.Minute
	Longest  = time.Hour
)

// Length is how long a job is watched whose runs typically take that long.
func Length(typical time.Duration) time.Duration { return min(max(typical, Shortest), Longest) }

// How often a job is looked at: soon at first, as most jobs that work show it at once; later so
// seldom that a process which wakes now and then is hardly ever met awake. A look at a machine
// with 10,000 processes takes a quarter of a second, and the pause after it is as much longer as
// keeps the watch at a hundredth of a processor.
const (
	looks   = 60  // in a whole watch, more or less
	cost    = 100 // pauses are as many times longer than a look
	longest = time.Second
)

// Job is what is watched.
type Job struct {
	Members func() ([]process.Entry, error)
	Length  time.Duration
	Over    func() bool // there is nothing to watch any more; asked each second. May be nil
}

// Verdict is what a watch came to; the zero Verdict: it was over before it was known.
type Verdict struct {
	Idle time.Duration // the job did nothing for so long: the whole watch
	Work string        // the first sign of work, in words
}

// Watch watches the job for its length, by CLOCK_MONOTONIC, or until it is seen to work, or is
// over. An error is that of Members. It writes nothing.
func (j Job) Watch() (Verdict, error) {
	var judge Judge
	var watched time.Duration
	began := time.Now()
	for pause := min(longest, j.Length); ; pause = min(2*pause, max(longest, j.Length/looks)) {
		look := time.Now()
		members, err := j.Members()
		if err != nil || len(members) == 0 {
			return Verdict{}, err
		}
		if work := judge.Look(Sample{At: time.Since(began), Members: figures(members)}); work != "" {
			return Verdict{Work: work}, nil
		}
		if watched >= j.Length {
			return Verdict{Idle: watched.Round(time.Second)}, nil
		}
		rest, over := j.sleep(max(min(pause, j.Length-watched), cost*time.Since(look)))
		if over {
			return Verdict{}, nil
		}
		watched += rest
	}
}

// sleep pauses for d, and returns how much of that counts as watched: a stretch that took much
// longer than it was to, as this process was stopped, counts for what it was meant to be.
func (j Job) sleep(d time.Duration) (watched time.Duration, over bool) {
	for d > 0 {
		began, nap := time.Now(), min(d, longest)
		time.Sleep(nap)
		watched += min(time.Since(began), 2*nap)
		d -= time.Since(began)
		if j.Over != nil && j.Over() {
			return watched, true
		}
	}
	return watched, false
}

// figures are what the members do. A supervisor of ours with something to supervise is left out:
// what works is its job, and it may read a runlog meanwhile.
func figures(members []process.Entry) []Figures {
	parents := map[int]bool{}
	for _, e := range members {
		parents[e.Parent] = true
	}
	var all []Figures
	for _, e := range members {
		f := Figures{Key: e.Key(), Command: e.Command}
		if !e.Supervises() || !parents[e.PID] {
			f.read(e)
		}
		all = append(all, f)
	}
	return all
}

// Turn lets one newcomer at a time watch the jobs of an atom: it takes the flock of the file name
// in the open directory dir. done gives it back, and removes the file; it is nil where another
// process has it. Two that watch because a file was just removed do no harm: a watch decides
// nothing by itself.
func Turn(dir int, name string) (done func(), err error) {
	fd, err := sysfile.Openat(dir, name, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	if err := sysfile.Flock(fd, unix.LOCK_EX, 0); err != nil {
		unix.Close(fd)
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = nil
		}
		return nil, err
	}
	return func() {
		_ = sysfile.Unlinkat(dir, name) // the next one to watch would remove it
		unix.Close(fd)
	}, nil
}
