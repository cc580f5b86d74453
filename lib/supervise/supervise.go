// Package supervise runs the job of `adlock run`: one command and all processes that it starts, from before
// the lock is taken until the job is gone (lib/protocol.md, 5).
//
// The order of calls keeps the atom held from the job's first instant:
//
//	path, err := supervise.Find(command) // 126, 127: before any lock
//	job, err := supervise.Prepare(...)   // on a terminal it starts a gate
//	result, err := job.Run()             // or job.Cancel() when denied
//	                                     // ... release the lock
//	err = job.Show(result)               // what --quiet-ok held back
//	result.DieAlike()                    // or exit with result.Status
//
// Caveats. The Go runtime takes over signals before main runs, and remembers only for INT and HUP that they were
// ignored. The job gets the default action for other signals that were ignored at the start. The supervisor cannot
// distinguish a signal to its whole group from one to itself: if a process other than the terminal signals the group,
// the job gets that signal twice. On a terminal, TSTP stops only the processes that get it: a shell and the keyboard
// send it to the whole group. If this process leads the group of a pipeline and its job has to be ended, the other
// commands of the pipeline are ended too. If a shell forks while INT is forwarded, the new process may miss the
// signal, as it may miss a typed INT. The shell acts on INT once that process has ended.
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
	Args    []string // the argument vector, the command's name first
	Env     []string // the whole environment

	// Keeps returns descriptors of this process that stay open in the job, with any numbers. May be nil.
	Keeps func() []int

	QuietOK bool // hold the output back until Show

	// Output opens the destination of the job's standard output; nil: this process's own. It is
	// called just before the job starts, when signals no longer end this process.
	Output func() (io.Writer, error)

	// WholeJob says that the job ends when all processes that the command started are gone, and not
	// when the command ends. It may be set only if CanKeepWhole is true.
	WholeJob bool

	Enforce     bool          // end the job at ExpireAfter, without a newcomer
	ExpireAfter time.Duration // counted from Run, without the sleep of the machine
	Watch       time.Duration // end the job only if it was idle during a watch of this length; 0: in any case

	// When End gets a value, the job is ended, with that pause between the signals. May be nil.
	End <-chan time.Duration

	// Cancelled is called, by another goroutine, with a signal that ends this process before the job. May be nil.
	Cancelled func(syscall.Signal)

	Pause   time.Duration          // between signals when the job is ended
	Observe func(killer.Signalled) // called for each signal sent; may be nil

	// Expires is called before the first signal if Enforce ends the job, with the time for which
	// the job had been idle (0: it was not watched). Stuck is called once, when it is known that
	// the job cannot be ended now, with the reason. Both may be nil.
	Expires func(idle time.Duration)
	Stuck   func(why error)

	// Begun is called with the command's identity once the command runs, unless Identity returned a gate.
	// Run returns an error of Begun, which changes nothing else. May be nil.
	Begun func(process.Identity) error

	// Record is called with every process of the job before the killer signals it. With WholeJob, Rest is called with
	// the daemons that the command left. Both return ErrBeingEnded if another process is ending the job; may be nil.
	Record, Rest func([]process.Identity) error

	// BeingEnded reports whether another process may be ending the job. Any goroutine may call it. May be nil.
	BeingEnded func() bool
}

var ErrBeingEnded = errors.New("another process is ending the job")

// Supervisor is a job that is ready to run. It is used once, by one goroutine. A process has at
// most one, because a Supervisor owns the process's children, signals and process group.
type Supervisor struct {
	catcher
	job    Job
	place  place
	gate   *gate   // nil without a terminal
	output *output // nil without QuietOK
	pipe   *pipe   // nil without Output
}

// Result is how a job ended.
type Result struct {
	// Started is false if Run returned an error and no command ran: the last lock must not be stamped.
	Started bool

	Status  int            // as a shell has it: exit status, 128+signal, or fault.StatusExpired
	Signal  syscall.Signal // the signal that ended the command; 0: none
	Ended   bool           // a signal, forwarded or typed, or Job.End ended the job
	Expired bool           // Enforce ended the job
	Idle    time.Duration  // how long the ended job had been idle; 0: it was not watched

	// Alone says that no process of the job is left: its orphans would be children of this process.
	Alone bool
}

// DieAlike ends this process by the signal that ended the command. It returns if no signal did, or if Enforce
// ended the job. It must be the last call.
func (r Result) DieAlike() {
	if r.Signal != 0 && !r.Expired {
		sysfile.DieOf(r.Signal)
	}
}

// Prepare prepares this process for the job, before the lock is taken. On a terminal it starts a gate, which gets
// typed input and signals from then on. Elsewhere the job has no process yet: if this process is killed before it has
// recorded the command, the mark shows the command (process.MarkVariable, which the caller exports).
//
// The process group of this process may change: read its identity afterwards. Signals are caught from here
// on; until Run they still end this process. Always call Run or Cancel afterwards.
func Prepare(job Job) (*Supervisor, error) {
	s := &Supervisor{catcher: newCatcher(job.Cancelled), job: job, place: findPlace()}
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
	if !s.place.terminal {
		return s, nil
	}
	gate, err := startGate(job, s.files())
	if err != nil {
		return nil, err
	}
	s.gate = gate
	return s, nil
}

// Identity returns the gate, which will become the job. The lock must name the gate, because the
// atom stays held while the gate lives. Without a gate Identity returns the zero value.
func (s *Supervisor) Identity() (process.Identity, error) {
	if s.gate == nil {
		return process.Identity{}, nil
	}
	return process.Of(s.gate.pid)
}

// ExpireAfter replaces the Job's ExpireAfter and Watch, before Run: a learned limit is known once the lock is taken.
func (s *Supervisor) ExpireAfter(d, watch time.Duration) { s.job.ExpireAfter, s.job.Watch = d, watch }

// Cancel drops a job that has not run. The gate is gone when Cancel returns.
func (s *Supervisor) Cancel() {
	if s.gate != nil {
		s.gate.abandon()
	}
}

// Show copies the output that QuietOK kept to the standard streams if the job failed. The error may also say
// that some output may be missing. Call Show after the release: a slow reader must not hold the atom.
func (s *Supervisor) Show(result Result) error {
	if s.output == nil {
		return nil
	}
	if result.Status != 0 {
		sysfile.LeaveToKernel(forwarded[:4]) // not USR1 and USR2, which may be meant for the job
		if err := s.output.show(); err != nil {
			return err
		}
	}
	return s.output.incomplete()
}

func (s *Supervisor) files() []uintptr {
	switch {
	case s.output != nil:
		return []uintptr{0, s.output.out.Fd(), s.output.trouble.Fd()}
	case s.pipe != nil:
		return []uintptr{0, s.pipe.writer.Fd(), 2}
	}
	return []uintptr{0, 1, 2}
}
