// Package supervise runs the job of `adlock run`: one command and all that it
// starts, from before its lock is taken until it is gone (lib/protocol.md, 5).
//
// The order of calls keeps the atom held from the job's first instant:
//
//	path, err := supervise.Find(command) // 126, 127: before any lock
//	job, err := supervise.Prepare(...)   // leads a group, or a gate is up
//	job, err := supervise.Prepare(...)   // leads a group, or starts a gate
//	result, err := job.Run()             // or job.Cancel() when denied
//	                                     // ... release the lock
//	err = job.Show(result)               // what --quiet-ok held back
//	result.DieAlike()                    // or exit with result.Status
//
// Caveats. The Go runtime takes over signals before main runs, and only INT and HUP are still
// known to have been ignored by then: another signal that was ignored at the start is the job's
// default again. A signal to a whole group looks like one to the supervisor, so if a process
// other than the terminal signals the group, the job gets it twice. On a terminal TSTP stops only
// the processes that get it: a shell and the keyboard send it to the whole group. If a job must
// be ended that shares a pipeline's group, led by this process, the other commands of the
// pipeline are ended with it. A process that a shell forks at the moment in which INT is
// forwarded may miss it, as with a typed INT: the shell then acts on it when that command is
// done.
package supervise

import (
	"errors"
	"io"
	"syscall"
	"time"

	"adlock/lib/fault"
	"adlock/lib/killer"
	"adlock/lib/process"
	"adlock/lib/sysfile"
)

// Job is a command, and the way to run it.
type Job struct {
	Command string   // as the user wrote it, for messages
	Path    string   // the file, as Find returned it
	Args    []string // the argument vector, its own name first
	Env     []string // the whole environment

	QuietOK bool // hold the output back for Show

	// Output opens the destination of the job's standard output; nil: this process's own. It is
	// called just before the job starts, when signals no longer end this process.
	Output func() (io.Writer, error)

	// WholeJob: the job is over when all processes that the command started are gone, and not
	// just the command. Only if CanKeepWhole is true.
	WholeJob bool

	Enforce     bool          // end the job at ExpireAfter, without a newcomer
	ExpireAfter time.Duration // counted from Run, suspended time included
	Watch       time.Duration // first watch for so long that the job is idle; 0: end it in any case

	// End ends the job when it receives a pause (the time between the signals): for a lock whose
	// owner no other process can end. May be nil.
	End <-chan time.Duration

	// Cancelled is called, by another goroutine, with a signal that ends this process before the
	// job begins. May be nil.
	Cancelled func(syscall.Signal)

	Pause   time.Duration          // between signals when the job is ended
	Observe func(killer.Signalled) // called for each signal sent; may be nil

	// Begun is called with the command when it runs, unless Identity named it before. Run returns
	// its error, which changes nothing. May be nil.
	Begun func(process.Identity) error

	// Record is called with every process of the job before it is signalled in order to end it
	// (killer.Killer), and Rest, with WholeJob, with those that the command left. ErrBeingEnded
	// says that another process does that. May be nil.
	Record, Rest func([]process.Identity) error

	// BeingEnded reports whether another process is ending the job, or has begun to. Any
	// goroutine may call it. May be nil: none is.
	BeingEnded func() bool
}

// ErrBeingEnded says that another process is ending the job.
var ErrBeingEnded = errors.New("somebody else is ending the job")

// Supervisor is a job that is ready to run. It is used once, by one goroutine. There is at most
// one in a process: it owns the process's children, signals and process group.
type Supervisor struct {
	watch
	job    Job
	place  place
	gate   *gate    // nil without a terminal, when this process leads a group
	output *output  // nil without QuietOK
	pipe   *pipe    // nil without Output
	beside []func() // the arguments of Beside
}

// Result is the end of a job.
type Result struct {
	// Started: the command ran. If it is false there is an error, nothing has happened, and the
	// last lock must not be stamped.
	Started bool

	// Alive: the job was to be ended and could not be. Some of it may live on, so the lock must
	// stay. The error names the processes.
	Alive bool

	Status  int            // as a shell has it: exit status, 128+signal, or fault.StatusExpired
	Signal  syscall.Signal // the one that ended the command; 0: none did
	Ended   bool           // a signal, forwarded or typed, told the job to end
	Expired bool           // Enforce ended the job
	Idle    time.Duration  // how long the ended job had been idle; 0: it was not watched
	Elapsed time.Duration  // since Run, suspended time included
}

// DieAlike ends this process by the signal that ended the command. It returns if no signal did,
// and if Enforce ended the job. It is the last call of all.
func (r Result) DieAlike() {
	if r.Signal != 0 && !r.Expired {
		sysfile.DieOf(r.Signal)
	}
}

// Prepare prepares this process for the job, before the lock is taken: without a terminal it
// becomes the leader of a process group, which then holds the atom. On a terminal a gate is
// started: a child that will become the job, and from now on gets typed input and signals, as
// this process does.
//
// The process group of the caller may change: read its identity afterwards. Signals are caught
// from here on, and until Run they still end this process. In any case Run or Cancel must follow.
func Prepare(job Job) (*Supervisor, error) {
	s := &Supervisor{watch: newWatch(job.Cancelled), job: job, place: leadGroup()}
	if job.QuietOK {
		output, err := newOutput()
		if err != nil {
			return nil, err
		}
		s.output = output
	}
	if job.Output != nil {
		pipe, err := newPipe()
		if err != nil {
			return nil, fault.Wrap(job.Command, err)
		}
		s.pipe = pipe
	}
	if s.place.leads && !s.place.terminal {
		return s, nil
	}
	gate, err := startGate(job, s.files())
	if err != nil {
		return nil, err
	}
	s.gate = gate
	return s, nil
}

// Identity returns the process that will become the job, if it waits at a gate: the lock must
// name it, as its life keeps the atom held. It is the zero Identity if the group that this
// process leads is enough.
func (s *Supervisor) Identity() (process.Identity, error) {
	if s.gate == nil {
		return process.Identity{}, nil
	}
	return process.Of(s.gate.pid)
}

// ExpireAfter sets the Job's ExpireAfter and Watch anew, before Run: a learned limit is known
// when the lock is taken.
func (s *Supervisor) ExpireAfter(d, watch time.Duration) { s.job.ExpireAfter, s.job.Watch = d, watch }

// Beside has another goroutine do work while the job runs; if the job does not start, work is not
// called. Between Prepare and Run.
//
// A descriptor that work closes is still open when the job is started. If it were closed
// meanwhile, the job might get the last copy, and close that before its program begins.
func (s *Supervisor) Beside(work func()) { s.beside = append(s.beside, work) }

// Cancel drops the job before it ran. The gate is gone when it returns.
func (s *Supervisor) Cancel() {
	if s.gate != nil {
		s.gate.abandon()
	}
}

// Show copies what QuietOK held back to standard output and standard error if the job failed;
// after a success it does nothing. Call it after the release of the lock: a slow reader must not
// hold the atom.
func (s *Supervisor) Show(result Result) error {
	if s.output == nil || result.Status == 0 && !result.Alive {
		return nil
	}
	return s.output.show()
}

// files returns the job's standard input, output and error.
func (s *Supervisor) files() []uintptr {
	switch {
	case s.output != nil:
		return []uintptr{0, s.output.out.Fd(), s.output.trouble.Fd()}
	case s.pipe != nil:
		return []uintptr{0, s.pipe.writer.Fd(), 2}
	}
	return []uintptr{0, 1, 2}
}
