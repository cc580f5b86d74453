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

// run is a running job. Only the goroutine that owns it reaps: a pid stays the job's until it is reaped.
type run struct {
	*Supervisor
	pid    int
	began  time.Time
	status syscall.WaitStatus // valid if gone
	gone   bool               // the command has ended

	endSent bool          // a signal to end was forwarded, or Job.End got a value
	resumed time.Duration // boottime of the last CONT; -outdated: none yet

	doomed  bool              // the job is to be ended whole: ExpireAfter has passed, or Job.End got a value
	late    bool              // ExpireAfter has passed
	expired bool              // late, and about to be signalled; written by endAll while ending is not nil
	idle    time.Duration     // Result.Idle
	watched chan idle.Verdict // gets the verdict of a watch; nil: the job is not watched
	rest    chan error        // gets a value when outlast or the output has ended; nil: not awaited
	reaped  chan struct{}     // gets a value when a process is reaped
	ending  chan error        // gets the result of ending the job; nil: it is not being ended
	stuck   time.Duration     // boottime at which the job could first not be ended; 0: never
	again   <-chan time.Time  // gets a value when the next try to end the job is due; nil: none is planned
	trouble error             // the first error that Run is to return
}

// Run starts the job and returns when it has ended. If the command ended by itself, processes in the
// background are left alone; with Output, after a success, Run waits until they close the output. Without
// Output, Run waits for the whole job if WholeJob is set, or another process has ended the command or may be
// ending the job (wasEnded). If a signal, Job.End or Enforce ends the job, Run ends the whole job. If that
// fails, Run tries again until nothing of the job is left, as no process would end it later.
//
// An error with Result.Started false means that nothing ran (status 126 or 127, mostly). With Started true,
// the Result is valid despite an error.
//
// Signals stay caught after Run, because the caller still has to release the lock.
func (s *Supervisor) Run() (Result, error) {
	r := &run{Supervisor: s, began: time.Now(), resumed: -outdated, reaped: make(chan struct{}, 1)}
	<-r.begin
	// This must come before the job starts. An outer supervisor then forwards signals to this
	// process and not to this process's job. If the call fails, the job gets some signals twice.
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
		r.pid, err = forkInheriting(r.job.kept(), path, args, r.job.Env, r.files())
		return err
	}))
	if err == nil {
		r.note(r.callBegun())
	}
	return err
}

// callBegun calls Begun with the command. If this process is killed before that, only the mark shows the command. With
// a gate the lock would name every command, but each start would take half as long again.
func (r *run) callBegun() error {
	if r.job.Begun == nil {
		return nil
	}
	id, err := process.OfChild(r.pid)
	if err != nil {
		return err
	}
	return r.job.Begun(id)
}

func (r *run) supervise() (Result, error) {
	limit := r.newAlarm()
	go r.attend(r.place)
	for {
		if r.gone && r.ending == nil && r.again == nil {
			switch {
			case r.endedBySignal():
				r.end(r.job.Pause) // the processes left have already got the signal, and have a pause to act on it
			case r.rest != nil:
			case r.pipe != nil && r.status == 0:
				r.rest = r.pipe.drained
			case r.pipe == nil && r.mustOutlast():
				r.outlast()
			default:
				return r.result()
			}
		}
		select {
		case <-r.children:
			r.reap()
			if r.gone && r.again != nil && !hasChildren() {
				r.tryAgain()
			}
		case sig := <-r.signals:
			r.forward(sig.(syscall.Signal))
		case <-r.stopped:
			r.forward(unix.SIGTSTP)
		case <-r.continued:
			r.forward(unix.SIGCONT)
		case <-limit.C:
			r.look()
		case seen := <-r.watched:
			r.judge(limit, seen)
		case pause := <-r.job.End:
			r.endAsked(pause)
		case err := <-r.rest:
			r.rest = nil
			if r.ending != nil { // the result comes from r.ending
				continue
			}
			if r.isOver(err) {
				return r.result()
			}
		case err := <-r.ending:
			r.ending = nil
			if r.isOver(err) {
				return r.result()
			}
		case <-r.again:
			r.tryAgain()
		}
	}
}

// reap reaps every child that has ended, orphans of the job included, and notes the status of the command.
func (r *run) reap() {
	for {
		pid, status := sysfile.Reap()
		if pid == 0 {
			return
		}
		if pid == r.pid && !r.gone { // once the command is gone, an orphan may have its pid
			r.gone, r.status = true, status
		}
		select {
		case r.reaped <- struct{}{}:
		default:
		}
	}
}

// endedBySignal reports whether a signal, forwarded by this process or typed, or Job.End ended the job. A
// typed signal counts only if the command died of it or was gone: some programs go on after it (INT in an editor).
func (r *run) endedBySignal() bool {
	return r.endSent || r.gone && r.status.Signaled() && isTyped(r.status.Signal()) && r.place.inForeground()
}

func (r *run) result() (Result, error) {
	result := Result{
		Started: true,
		Ended:   r.endedBySignal(),
		Expired: r.expired,
		Idle:    r.idle,
		Alone:   isAlone(),
	}
	result.Status, result.Signal = statusOf(r.status)
	if r.expired {
		result.Status = fault.StatusExpired
	}
	if r.pipe != nil {
		r.note(r.pipe.trouble())
	}
	return result, r.trouble
}

// statusOf returns the status as a shell's $?, and the signal that ended the command; 0: none.
func statusOf(status syscall.WaitStatus) (int, syscall.Signal) {
	if status.Signaled() {
		return 128 + int(status.Signal()), status.Signal()
	}
	return status.ExitStatus(), 0
}

// note keeps the first error for Run to return. An error does not change what happens to the job.
func (r *run) note(err error) {
	if r.trouble == nil {
		r.trouble = err
	}
}
