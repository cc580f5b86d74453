// Package supervise runs the job of `adlock run`: one command and all that it
// starts, from before its lock is taken until it is gone (lib/protocol.md, 5).
//
// The order of calls keeps the atom held from the job's first instant:
//
//	path, err := supervise.Find(command) // 126, 127: before any lock
//	job, err := supervise.Prepare(...)   // leads a group, or a gate is up
//	                                     // ... take the lock, naming job.Identity()
//	result, err := job.Run()             // or job.Cancel() when denied
//	                                     // ... release the lock
//	err = job.Show(result)               // what --quiet-ok held back
//	result.DieAlike()                    // or exit with result.Status
//
// Caveats. The Go runtime takes over signals before main runs, and only INT and
// HUP are still known to have been ignored by then: another signal that was
// ignored at the start is the job's default again. A signal sent to a whole
// group cannot be told from one sent to the supervisor, so where a process other
// than the keyboard signals the group, the job gets it twice. On a terminal TSTP
// stops what gets it: a shell and the keyboard send it to the whole group. Where
// something of a job has to be ended and the job shares a pipeline's group that
// this process leads, the other commands of the pipeline are ended with it.
// What a shell forks in the very moment in which INT is passed on can miss it, as it can
// miss one that is typed: the shell then acts on it when that command is done.
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

// Job is a command, and how it is to be run.
type Job struct {
	Command string   // as the user wrote it, for messages
	Path    string   // the file, as Find returned it
	Args    []string // the argument vector, its own name first
	Env     []string // the whole environment

	QuietOK bool // hold the output back, for Show

	// Output opens what gets the job's standard output; nil: this process's does. It is
	// called just before the job starts, when signals do not end this process any more.
	Output func() (io.Writer, error)

	// WholeJob: the job is over when all that the command started is gone, and not
	// when the command is. Only where CanKeepWhole says so.
	WholeJob bool

	Enforce     bool          // end the job at ExpireAfter, without a newcomer
	ExpireAfter time.Duration // counted from Run, suspended time included
	Watch       time.Duration // first watch for so long that the job is idle; 0: end it whatever it does

	// End ends the job when it brings a pause, with that between the signals: for
	// a lock whose owner no other process can end. May be nil.
	End <-chan time.Duration

	// Cancelled is told of a signal that ends this process before the job begins, by
	// another goroutine. May be nil.
	Cancelled func(syscall.Signal)

	Pause   time.Duration          // between signals when the job is ended
	Observe func(killer.Signalled) // told of each signal sent; may be nil

	// Begun is told of the command once it runs, unless Identity named it before.
	// Its error is reported by Run and changes nothing. May be nil.
	Begun func(process.Identity) error

	// Record is told of every process of the job before it is signalled in order to
	// end it (killer.Killer), and Rest, with WholeJob, of those that the command left.
	// ErrBeingEnded says that a newcomer does that. May be nil.
	Record, Rest func([]process.Identity) error

	// BeingEnded says whether a newcomer is ending the job, or has begun to. It
	// may be called by any goroutine. May be nil: none does.
	BeingEnded func() bool
}

// ErrBeingEnded says that a newcomer is ending the job.
var ErrBeingEnded = errors.New("somebody else is ending the job")

// Supervisor is a job that is ready to run. It is used once, by one goroutine.
// There is at most one in a process: it owns the process's children, signals
// and process group.
type Supervisor struct {
	watch
	job    Job
	place  place
	gate   *gate    // nil off a terminal, where this process leads a group
	output *output  // nil without QuietOK
	pipe   *pipe    // nil without Output
	beside []func() // what Beside was given
}

// Result tells how a job ended.
type Result struct {
	// Started says that the command ran. Where it is false there is an error,
	// nothing has happened, and the last lock is not to be stamped.
	Started bool

	// Alive says that the job was to be ended and could not be: some of it may
	// live on, so the lock must stay. There is an error that names it.
	Alive bool

	Status  int            // as a shell has it: exit status, 128+signal, or fault.StatusExpired
	Signal  syscall.Signal // the one that ended the command; 0: none did
	Ended   bool           // a signal, passed on or typed, told the job to end
	Expired bool           // Enforce ended the job
	Idle    time.Duration  // which had done nothing for so long; 0: it was not watched
	Elapsed time.Duration  // since Run, suspended time included
}

// DieAlike ends this process by the signal that ended the command. It returns where no signal
// did, and where Enforce ended the job. It is the last call of all.
func (r Result) DieAlike() {
	if r.Signal != 0 && !r.Expired {
		sysfile.DieOf(r.Signal)
	}
}

// Prepare readies this process for the job, before the lock is taken: off a
// terminal it comes to lead a process group, which then holds the atom. On a
// terminal a gate is started: a child that will become the job, and gets what is
// typed from now on, as this process does.
//
// The process group of the caller may change: read its identity afterwards.
// Signals are listened to from here on, and until Run they still end this
// process. A second step is due in any case, Run or Cancel.
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

// Identity returns the process that will become the job, where it waits at a
// gate: the lock has to name it, as its life keeps the atom held. It is the zero
// Identity where the group that this process leads is enough.
func (s *Supervisor) Identity() (process.Identity, error) {
	if s.gate == nil {
		return process.Identity{}, nil
	}
	return process.Of(s.gate.pid)
}

// ExpireAfter sets that of the Job and its Watch anew, before Run: a limit that is learned is
// known when the lock is taken.
func (s *Supervisor) ExpireAfter(d, watch time.Duration) { s.job.ExpireAfter, s.job.Watch = d, watch }

// Beside has work done while the job runs, by another goroutine; where the job does not
// start it is not done. Between Prepare and Run.
//
// A descriptor that work closes is still open when the job is started. Were it closed
// meanwhile, the job might come to have the last copy, and close that before its program
// begins.
func (s *Supervisor) Beside(work func()) { s.beside = append(s.beside, work) }

// Cancel gives the job up before it ran. The gate is gone when it returns.
func (s *Supervisor) Cancel() {
	if s.gate != nil {
		s.gate.abandon()
	}
}

// Show copies what QuietOK held back to standard output and standard error if the job failed;
// after a success it does nothing. Call it after the release of the lock: a slow reader must
// not hold the atom.
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
