// Package idle finds out whether a job works, by watching what its processes do for a while. A limit that was learned
// from runtimes alone cannot tell a long run from one that hangs; a watch can.
//
// A job works if a sample shows that a member is running, in uninterruptible sleep, stopped or traced. It works if a
// member has read or written, was started or has ended, or a child of a member has ended. It works if a member takes
// more processor time or page faults (a fork causes them) than a language runtime that only waits. It also counts as
// working if a member cannot be read, or has run and ignores SIGCHLD, as its children then leave no trace.
//
// The package does not see work outside the job's processes (a database server, the far end of ssh, the
// GPU). Nor does it see bytes that pass only by send(2) and recv(2), which /proc/PID/io does not count, or
// short children that a process with SA_NOCLDWAIT starts by vfork(2) or posix_spawn(3). It cannot know that
// a long sleep is intended. And a loop that retries without end looks like work.
package idle

import (
	"errors"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/process"
	"adlock/lib/sysfile"
)

// A job is watched for the time of a typical run, within these bounds. Tests change them.
var (
	Shortest = time.Minute
	Longest  = time.Hour
)

// Length returns how long to watch a job; typical is the duration of its typical run.
func Length(typical time.Duration) time.Duration { return min(max(typical, Shortest), Longest) }

// A job is sampled often at first, as most jobs that work show it at once. Later samples are so rare that a watch
// takes at most a hundredth of a processor. A sample takes 0.25 s with 10,000 processes.
const (
	looks   = 60          // about how many samples a whole watch takes
	cost    = 100         // a pause is at least this many times as long as the processor time of the sample before it
	longest = time.Second // the first pause, and the longest sleep between two calls of Job.Over
)

type Job struct {
	Members func() ([]process.Entry, error)
	Length  time.Duration
	Over    func() bool // reports whether there is nothing left to watch; called each second. May be nil
}

// Verdict is the result of a watch. It is zero if Job.Over ended the watch, or no member was left.
type Verdict struct {
	Idle time.Duration // how long the job did nothing: the whole watch
	Work string        // the first sign of work, in words
}

// Watch watches the job for Job.Length, by CLOCK_MONOTONIC, or until the job is seen to work, has no member
// left, or Job.Over is true. An error is that of Job.Members. Watch writes nothing.
func (j Job) Watch() (Verdict, error) {
	var judge Judge
	var watched time.Duration
	began := time.Now()
	for pause := min(longest, j.Length); ; pause = min(2*pause, max(longest, j.Length/looks)) {
		look := processorTime()
		members, err := j.Members()
		if err != nil || len(members) == 0 {
			return Verdict{}, err
		}
		if work := judge.Look(time.Since(began), figures(members)); work != "" {
			return Verdict{Work: work}, nil
		}
		if watched >= j.Length {
			return Verdict{Idle: watched.Round(time.Second)}, nil
		}
		rest, over := j.sleep(max(min(pause, j.Length-watched), cost*(processorTime()-look)))
		if over {
			return Verdict{}, nil
		}
		watched += rest
	}
}

// processorTime returns how long this process has used a processor; a clock would also count the work of others.
func processorTime() time.Duration {
	var used unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &used) // it cannot fail
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// sleep pauses for d, or until Job.Over is true (over), and returns how much of the pause counts as watched. Each nap
// counts at most twice its intended time, as this process may have been stopped during the nap.
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

// figures reads what the members do. It does not read an adlock supervisor that has children: these do the work, and
// the supervisor's own reading of the runlog would look like work.
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

// Turn lets one newcomer at a time watch the jobs of an atom: it creates the file called name in the open directory
// dir, and locks it (flock). done removes the file. done is nil if another process has the lock, or if ten tries
// failed. But if standsStill reports that this other process is stopped, Turn replaces the file. Two newcomers may then
// watch at once, which does no harm, as a watch only observes. cut reports that an earlier watch did not finish: its
// newcomer is stopped, or was killed (the file has been unlocked for a second).
func Turn(dir int, name string, standsStill func() bool) (done func(), cut bool, err error) {
	const tries = 10 // other newcomers may create and remove the file between two calls
	for range tries {
		fd, err := open(dir, name, unix.O_CREAT|unix.O_EXCL)
		fresh := err == nil
		if errors.Is(err, unix.EEXIST) {
			fd, err = open(dir, name, 0)
		}
		switch {
		case errors.Is(err, unix.ENOENT):
			continue
		case err != nil:
			return nil, cut, err
		}
		err = sysfile.Flock(fd, unix.LOCK_EX, 0)
		held := errors.Is(err, unix.EWOULDBLOCK)
		switch {
		case err == nil && fresh:
			return func() { leave(dir, name, fd) }, cut, nil
		case err != nil && !held, held && !standsStill():
			unix.Close(fd)
			if held {
				err = nil
			}
			return nil, cut, err
		}
		there, age := leave(dir, name, fd)
		cut = cut || there && (held || age > time.Second)
	}
	return nil, cut, nil
}

func open(dir int, name string, flags int) (int, error) {
	fd, err := sysfile.Openat(dir, name, flags|unix.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return fd, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return fd, nil
}

// leave removes the open file, unless another process has removed it, and reports whether the file was there. If the
// removal fails, the newcomer that watches next removes the file.
func leave(dir int, name string, fd int) (there bool, age time.Duration) {
	defer unix.Close(fd)
	var st unix.Stat_t
	there = sysfile.Fstat(fd, &st) == nil && st.Nlink > 0
	if there {
		_ = sysfile.Unlinkat(dir, name)
	}
	return there, time.Since(time.Unix(st.Mtim.Unix()))
}
