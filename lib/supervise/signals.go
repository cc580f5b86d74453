package supervise

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/killer"
	"adlock/lib/process"
	"adlock/lib/sysfile"
)

// watch has the signals that this process catches while its job runs. Notify drops a signal if
// its channel is full, so each signal has a channel of its own: then the same signal waits there
// already, and two waiting ones are one, as for the kernel.
type watch struct {
	signals   chan os.Signal // from the channels of those that are forwarded
	stopped   chan os.Signal // TSTP
	continued chan os.Signal // CONT
	children  chan os.Signal // CHLD; a waiting one stands for all
	begin     chan struct{}  // received by the goroutine that starts the job: from then on the signals are the job's
}

// newWatch starts to catch the signals that would end this process without the job's knowledge. A
// signal that was ignored at the start (nohup) stays ignored, here and in the job: Notify would
// revert that.
//
// Each Notify costs the runtime two switches between threads, in all as much as taking the lock.
// So they run beside that, except for QUIT, for which the runtime prints a trace. One goroutine
// forwards all signals: one for each would cost as much again.
func newWatch(cancelled func(syscall.Signal)) watch {
	w := watch{make(chan os.Signal), make(chan os.Signal, 1), make(chan os.Signal, 1), make(chan os.Signal, 1), make(chan struct{})}
	go w.pass(channelOf(unix.SIGQUIT), cancelled)
	return w
}

// pass forwards the signals when the job begins.
func (w watch) pass(quit chan os.Signal, cancelled func(syscall.Signal)) {
	interrupt, end, hangup := channelOf(unix.SIGINT), channelOf(unix.SIGTERM), channelOf(unix.SIGHUP)
	one, two := channelOf(unix.SIGUSR1), channelOf(unix.SIGUSR2)
	for begin := w.begin; ; {
		var sig os.Signal
		select {
		case begin <- struct{}{}:
			begin = nil
			continue
		case sig = <-quit:
		case sig = <-interrupt:
		case sig = <-end:
		case sig = <-hangup:
		case sig = <-one:
		case sig = <-two:
		}
		if begin == nil {
			w.signals <- sig
		} else {
			standIn(sig.(syscall.Signal), cancelled)
		}
	}
}

// channelOf is the channel of a signal; nil if the signal is ignored.
func channelOf(sig os.Signal) chan os.Signal {
	if signal.Ignored(sig) {
		return nil
	}
	one := make(chan os.Signal, 1)
	signal.Notify(one, sig)
	return one
}

// standIn does what the signal's default action would do before the job begins: it ends this
// process, also while that waits for the lock. A user-defined signal is for the job, and is lost
// while there is none.
func standIn(sig syscall.Signal, cancelled func(syscall.Signal)) {
	if sig != unix.SIGUSR1 && sig != unix.SIGUSR2 {
		tellWithin(time.Second, cancelled, sig)
		sysfile.DieOf(sig)
	}
}

// tellWithin reports a signal, and does not wait for a file system that hangs: the signal must
// end this process.
func tellWithin(most time.Duration, cancelled func(syscall.Signal), sig syscall.Signal) {
	if cancelled == nil {
		return
	}
	told := make(chan struct{})
	go func() { cancelled(sig); close(told) }()
	select {
	case <-told:
	case <-time.After(most):
	}
}

// attend starts to catch the other signals, when the job is started: until then the kernel's
// default is right. On a terminal TSTP is left to the kernel for good: it stops the whole group,
// and knows when it must not, as no shell would ever continue it.
func (w watch) attend(p place) {
	signal.Notify(w.children, unix.SIGCHLD)
	select {
	case w.children <- unix.SIGCHLD: // for a child that died before attend
	default:
	}
	signal.Notify(w.continued, unix.SIGCONT)
	if !p.terminal && !signal.Ignored(unix.SIGTSTP) {
		signal.Notify(w.stopped, unix.SIGTSTP)
	}
}

// forward forwards sig to its destination.
func (r *run) forward(sig syscall.Signal) {
	switch {
	case r.ending != nil:
		// The job is being ended: the ending sends it each signal once.
	case sig == unix.SIGTSTP:
		r.stop()
	case sig == unix.SIGCONT:
		r.resume()
	case sig == unix.SIGUSR1, sig == unix.SIGUSR2:
		r.signalChild(sig)
	case sig == unix.SIGHUP:
		r.told = true
		r.signalChild(sig)
	case isTyped(sig) && r.place.inForeground():
		// It came from the keyboard, and the job has it already. The command decides its meaning;
		// if the command is gone, it ends the rest.
		r.told = r.told || r.gone
	default:
		// To all: a shell handles it only after its foreground child has ended. Parents come
		// first, or they would start their next command.
		r.told = true
		r.signalAll(sig)
	}
}

// isTyped: the terminal sends these to the whole foreground group.
func isTyped(sig syscall.Signal) bool { return sig == unix.SIGINT || sig == unix.SIGQUIT }

// stop stops the job. The signal is STOP: the job may be all of an orphaned group, in which TSTP
// does nothing. This process goes on: a CONT that came just before it stopped itself would
// continue no process, and a stopped supervisor would neither reap nor enforce.
func (r *run) stop() {
	if len(r.continued) == 0 && process.Boottime()-r.resumed >= outdated {
		r.signalAll(unix.SIGSTOP)
	}
}

// resume continues the job, whether stop or another process stopped it.
func (r *run) resume() {
	r.signalAll(unix.SIGCONT)
	select {
	case <-r.stopped:
	default:
	}
	r.resumed = process.Boottime()
}

// outdated is how much later than a CONT a TSTP may arrive that was sent before it: the runtime
// keeps no order. Of two that come together only the CONT counts, as a job that stays stopped
// holds the atom for good.
const outdated = 100 * time.Millisecond

// signalAll sends sig to every process of the job, parents first. A nested supervisor forwards
// signals to its own job, except STOP, which no process can forward.
func (r *run) signalAll(sig syscall.Signal) {
	members, err := r.place.members()
	r.note(err)
	supervised := make(map[int]bool) // the pids whose children have a supervisor of their own
	for _, m := range members {
		supervised[m.PID] = supervised[m.Parent] || m.Supervises()
		if !supervised[m.Parent] || sig == unix.SIGSTOP {
			r.send(m, sig)
		}
	}
}

// signalChild sends sig to the command itself; if that is gone, to the head of the rest: the
// children that this process has inherited. The command's pid is its own until this goroutine
// reaps it.
func (r *run) signalChild(sig syscall.Signal) {
	if r.gone {
		r.signalHeirs(sig)
		return
	}
	id, err := process.Of(r.pid)
	if err == nil {
		r.send(process.Entry{PID: id.PID, Start: id.Start, Command: r.job.Command}, sig)
	}
}

func (r *run) signalHeirs(sig syscall.Signal) {
	members, err := r.place.members()
	r.note(err)
	for _, m := range members {
		if m.Parent == unix.Getpid() {
			r.send(m, sig)
		}
	}
}

// send signals one process; a process that is gone needs no signal.
func (r *run) send(m process.Entry, sig syscall.Signal) {
	err := m.Signal(sig)
	if errors.Is(err, unix.ESRCH) {
		return
	}
	r.note(err)
	if err == nil && r.job.Observe != nil {
		r.job.Observe(killer.Signalled{PID: m.PID, Signal: sysfile.SignalName(sig), Command: m.Command})
	}
}
