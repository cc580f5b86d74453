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

// catcher has the channels of the signals that are caught while the job runs. Notify drops a signal whose
// channel is full: the same signal already waits there, and two pending ones count as one, as in the kernel.
type catcher struct {
	signals   chan os.Signal // all signals that are forwarded and have no channel below
	stopped   chan os.Signal // TSTP
	continued chan os.Signal // CONT
	children  chan struct{}  // gets a value when a child has ended
	begin     chan struct{}  // Run receives from it as the job starts: from then on signals go to the job
}

// forwarded are the signals that would end this process and leave the job running. QUIT comes first, as
// the runtime would print a trace at a QUIT.
var forwarded = [...]os.Signal{unix.SIGQUIT, unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2}

// giveBack lets the runtime handle signals again if LeaveSignals was called; else it does nothing.
var giveBack = func() {}

// LeaveSignals lets the kernel end this process at the signals that Prepare catches. Call it first: the runtime's
// handler ends the process in several steps, between which other threads could start the job.
func LeaveSignals() { giveBack = sysfile.LeaveToKernel(forwarded[:]) }

// newCatcher starts to catch the forwarded signals. A HUP or INT that is ignored at the start (nohup) stays ignored,
// here and in the job: Notify would revert that. One goroutine forwards all signals: one for each would cost two
// switches between threads. That goroutine does not call Notify, for which the runtime would enlarge its stack.
func newCatcher(cancelled func(syscall.Signal)) catcher {
	c := catcher{make(chan os.Signal), make(chan os.Signal, 1), make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})}
	var caught [len(forwarded)]chan os.Signal
	for i, sig := range forwarded {
		caught[i] = channelOf(sig)
	}
	giveBack()
	go c.pass(caught, cancelled)
	return c
}

// pass handles the signals: it calls standIn until the job begins, and sends them to c.signals afterwards.
func (c catcher) pass(caught [len(forwarded)]chan os.Signal, cancelled func(syscall.Signal)) {
	for begin := c.begin; ; {
		var sig os.Signal
		select {
		case begin <- struct{}{}:
			begin = nil
			continue
		case sig = <-caught[0]:
		case sig = <-caught[1]:
		case sig = <-caught[2]:
		case sig = <-caught[3]:
		case sig = <-caught[4]:
		case sig = <-caught[5]:
		}
		if begin == nil {
			c.signals <- sig
		} else {
			standIn(sig.(syscall.Signal), cancelled)
		}
	}
}

// channelOf returns a channel that gets the signal; nil if the signal is ignored.
func channelOf(sig os.Signal) chan os.Signal {
	if signal.Ignored(sig) {
		return nil
	}
	one := make(chan os.Signal, 1)
	signal.Notify(one, sig)
	return one
}

// standIn handles a signal that comes before the job begins, for example while this process waits for the lock. It
// calls cancelled, then ends this process by the signal, as flock(1) and env(1) end.
func standIn(sig syscall.Signal, cancelled func(syscall.Signal)) {
	callWithin(time.Second, cancelled, sig)
	sysfile.DieOf(sig)
}

// callWithin calls cancelled, which may be nil, and waits until cancelled returns or most has passed: the signal
// must end this process even if a file system hangs.
func callWithin(most time.Duration, cancelled func(syscall.Signal), sig syscall.Signal) {
	if cancelled == nil {
		return
	}
	called := make(chan struct{})
	go func() { cancelled(sig); close(called) }()
	select {
	case <-called:
	case <-time.After(most):
	}
}

// attend is called when the job starts: until then the default actions of CONT and TSTP are right. It catches CONT
// and, unless it is ignored, TSTP. It leaves TSTP alone on a terminal: there the kernel stops the whole group, or
// no process of an orphaned group. It then waits for the ends of this process's children (awaitChildren).
func (c catcher) attend(p place) {
	signal.Notify(c.continued, unix.SIGCONT)
	if !p.terminal && !signal.Ignored(unix.SIGTSTP) {
		signal.Notify(c.stopped, unix.SIGTSTP)
	}
	c.awaitChildren()
}

func (r *run) forward(sig syscall.Signal) {
	switch {
	case r.ending != nil:
		// The job is being ended, and gets each signal once from the killer.
	case sig == unix.SIGTSTP:
		r.stop()
	case sig == unix.SIGCONT:
		r.resume()
	case sig == unix.SIGUSR1, sig == unix.SIGUSR2:
		r.signalChild(sig)
	case sig == unix.SIGHUP:
		r.endSent = true
		r.signalChild(sig)
	case isTyped(sig) && r.place.inForeground():
		// The signal may come from the keyboard; then the job has got it too. The command decides
		// what it means; if the command is gone, the signal ends the rest.
		r.endSent = r.endSent || r.gone
	default:
		// The signal goes to all processes, because a shell handles it only after its foreground
		// child has ended. Parents get it first, or they would start their next command.
		r.endSent = true
		r.signalAll(sig)
	}
}

// isTyped reports whether the signal may come from a key, for which a terminal signals its foreground group.
func isTyped(sig syscall.Signal) bool { return sig == unix.SIGINT || sig == unix.SIGQUIT }

// stop stops the job, with STOP: the job's group may be orphaned, and TSTP does nothing in such a
// group. This process does not stop itself: if a CONT had come just before, no other CONT would
// continue it, and a stopped supervisor neither reaps nor enforces.
func (r *run) stop() {
	if len(r.continued) == 0 && process.Boottime()-r.resumed >= outdated {
		r.signalAll(unix.SIGSTOP)
	}
}

func (r *run) resume() {
	r.signalAll(unix.SIGCONT)
	select {
	case <-r.stopped:
	default:
	}
	r.resumed = process.Boottime()
}

// outdated is how long after a CONT a TSTP may arrive that was sent before that CONT: the runtime does not keep
// the order. Within this time a TSTP is ignored: a job that stays stopped would hold the atom for good.
const outdated = 100 * time.Millisecond

// signalAll sends sig to every process of the job, parents first, but not to the job of a nested supervisor,
// which forwards signals itself. STOP cannot be caught, so signalAll sends it to the nested job too.
func (r *run) signalAll(sig syscall.Signal) {
	members, err := r.place.members()
	r.note(err)
	supervised := make(map[int]bool) // pids of nested supervisors and of their descendants
	for _, m := range members {
		supervised[m.PID] = supervised[m.Parent] || m.Supervises()
		if !supervised[m.Parent] || sig == unix.SIGSTOP {
			r.send(m, sig)
		}
	}
}

// signalChild sends sig to the command. If the command is gone, it sends sig to the job's orphans, which are
// now children of this process. No other process gets the command's pid before this goroutine reaps it.
func (r *run) signalChild(sig syscall.Signal) {
	if r.gone {
		r.signalHeirs(sig)
		return
	}
	e, err := process.Find(r.pid)
	if r.note(err); err == nil {
		r.send(e, sig)
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

// send signals one process, unless it is gone, and reports the signal (Job.Observe) or why it was refused.
func (r *run) send(m process.Entry, sig syscall.Signal) {
	err := m.Signal(sig)
	switch {
	case errors.Is(err, unix.ESRCH):
		return
	case errors.Is(err, unix.EPERM) && r.endSent:
		r.sayStuck(process.Refused(m, unix.EPERM))
		return
	}
	r.note(err)
	if err == nil && r.job.Observe != nil {
		r.job.Observe(killer.Signalled{PID: m.PID, Signal: sysfile.SignalName(sig), Command: m.Command})
	}
}
