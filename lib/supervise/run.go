package supervise

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/idle"
	"adlock/lib/process"
	"adlock/lib/sysfile"
)

// run is the state of a running job. One goroutine owns it, and also reaps: so a pid that has not
// been reaped is still the job's.
type run struct {
	*Supervisor
	pid    int
	began  time.Duration      // boottime
	status syscall.WaitStatus // valid if gone
	gone   bool               // the command itself has ended

	told    bool          // a signal to end was forwarded
	resumed time.Duration // boottime of the last CONT; long ago: none

	expired bool
	idle    time.Duration     // Result.Idle
	watched chan idle.Verdict // not nil: the job is watched, and this gets the verdict
	rest    chan error        // not nil: the command wasEnded, and this is signalled when the rest of the job is gone
	reaped  chan struct{}     // a process was reaped since the last look
	ending  chan error        // not nil: the job is being ended, and this gets the result
	trouble error             // the first signal that could not be sent
}

// Run starts the job and returns when it has ended. If the command ended by itself, processes in
// the background are left alone (but with Output, Run waits until they have closed it). With
// WholeJob, or if the command died of a signal or another process is ending the job, Run waits
// for all of it; if a signal told us to end the job, or Enforce did, it ends the rest too.
// told us to end the job or Enforce did, which ends the rest too.
//
// An error with Result.Started false means that nothing ran, mostly because the command cannot be
// executed (status 126 or 127). An error with Result.Alive means that the job could not be ended:
// the lock must stay. Any other is a signal that could not be forwarded, and changes nothing.
//
// Signals stay caught afterwards: what is left to do is short, and a job that has ended must be
// released.
func (s *Supervisor) Run() (Result, error) {
	r := &run{Supervisor: s, began: process.Boottime(), resumed: -outdated, reaped: make(chan struct{}, 1)}
	<-r.begin
	// Before there is a job: so the outer supervisor forwards a signal that it alone got to this
	// process, and no outside signal to the job. If the call fails, the job gets some signals
	// twice.
	_ = process.CallSupervisor()
	if err := r.open(); err != nil {
		r.Cancel()
		return Result{Status: fault.StatusOf(err)}, err
	}
	if err := r.start(); err != nil {
		return Result{Status: fault.StatusOf(err)}, err
	}
	if r.pipe != nil {
		r.pipe.begin()
	}
	return r.supervise()
}

func (r *run) start() error {
	if err := adoptOrphans(); err != nil {
		return fault.Wrap(r.job.Command, err)
	}
	if r.gate != nil {
		r.pid = r.gate.pid
		return r.gate.open()
	}
	err := cannotRun(r.job.Command, execute(r.job.Path, r.job.Args, func(path string, args []string) (err error) {
		r.pid, err = syscall.ForkExec(path, args, &syscall.ProcAttr{Env: r.job.Env, Files: r.files()})
		return err
	}))
	if err == nil {
		r.note(r.tellBegun())
	}
	return err
}

// tellBegun records the command, which may be about to leave the process group. If this process
// is killed before that, nothing names such a command: a pid cannot be written before it exists,
// and holding each command at a gate would cost half a start more.
func (r *run) tellBegun() error {
	if r.job.Begun == nil {
		return nil
	}
	id, err := process.Of(r.pid) // not reaped yet, so the pid is the command's
	if err != nil {
		return err
	}
	return r.job.Begun(id)
}

func (r *run) supervise() (Result, error) {
	limit := r.newAlarm()
	go func() {
		r.attend(r.place)
		for _, work := range r.beside {
			work()
		}
	}()
	for {
		if r.gone && r.ending == nil {
			switch {
			case r.toldToEnd():
				r.endRest()
			case r.rest != nil:
			case r.pipe != nil && r.status == 0:
				r.rest = r.pipe.drained
			case r.pipe == nil && r.mustOutlast():
				r.outlast()
			default:
				return r.result(nil)
			}
		}
		select {
		case <-r.children:
			r.reap()
		case sig := <-r.signals:
			r.forward(sig.(syscall.Signal))
		case <-r.stopped:
			r.forward(unix.SIGTSTP)
		case <-r.continued:
			r.forward(unix.SIGCONT)
		case <-limit.C:
			r.look(limit)
		case seen := <-r.watched:
			r.judge(limit, seen)
		case pause := <-r.job.End:
			r.endAsked(pause)
		case err := <-r.rest:
			if r.ending == nil {
				r.reap()
				return r.result(err)
			}
			r.rest = nil // the ending reports instead
		case err := <-r.ending:
			r.reap()
			return r.result(err)
		}
	}
}

// reap reaps every child that has ended, orphans of the job too.
func (r *run) reap() {
	for {
		pid, status := sysfile.Reap()
		if pid == 0 {
			return
		}
		if pid == r.pid && !r.gone { // else it is an orphan that got its pid later
			r.gone, r.status = true, status
		}
		select {
		case r.reaped <- struct{}{}:
		default:
		}
	}
}

// toldToEnd reports whether the command ended because of a signal through this process or from
// the keyboard. A typed signal counts only if the command died of it: programs use it (INT in an
// editor) for ends of their own.
func (r *run) toldToEnd() bool {
	return r.told || r.gone && r.status.Signaled() && isTyped(r.status.Signal()) && r.place.inForeground()
}

func (r *run) result(err error) (Result, error) {
	result := Result{
		Started: true,
		Ended:   r.toldToEnd(),
		Expired: r.expired,
		Idle:    r.idle,
		Alive:   err != nil,
		Elapsed: process.Boottime() - r.began,
	}
	result.Status, result.Signal = statusOf(r.status)
	if r.expired {
		result.Status = fault.StatusExpired
	}
	if r.pipe != nil {
		r.note(r.pipe.trouble())
	}
	if err == nil {
		err = r.trouble
	}
	return result, err
}

// statusOf returns the $? of a shell, and the signal, if one ended the command.
func statusOf(status syscall.WaitStatus) (int, syscall.Signal) {
	if status.Signaled() {
		return 128 + int(status.Signal()), status.Signal()
	}
	return status.ExitStatus(), 0
}

// note keeps the first error; no error changes what happens to the job.
func (r *run) note(err error) {
	if r.trouble == nil {
		r.trouble = err
	}
}
