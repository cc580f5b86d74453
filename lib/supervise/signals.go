package supervise

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/process"
)

// watch is what this process hears while its job runs. Notify drops what a
// channel has no room for, so each signal has one of its own: what is dropped waits
// there already, and two that wait are one, as for the kernel.
type watch struct {
	signals   chan os.Signal // from the channels of those that are forwarded
	stopped   chan os.Signal // TSTP
	continued chan os.Signal // CONT
	children  chan os.Signal // CHLD; one that waits stands for all
	begin     chan struct{}  // taken by whoever starts the job: from then on the signals are the job's
}

// newWatch starts to listen for the signals that would end this process and
// leave the job unaware. A signal that was ignored at the start (nohup) stays
// ignored, here and in the job: Notify would take it back.
//
// To listen costs the runtime two switches between threads for each signal, in
// all as much as taking the lock. So it is done beside that.
func newWatch() watch {
	w := watch{make(chan os.Signal), make(chan os.Signal, 1), make(chan os.Signal, 1), make(chan os.Signal, 1), make(chan struct{})}
	go func() {
		// First those that do something else than they should while nobody listens: for
		// QUIT the runtime prints a trace.
		for _, sig := range []os.Signal{unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGINT, unix.SIGTERM, unix.SIGHUP} {
			if !signal.Ignored(sig) {
				w.listen(sig)
			}
		}
		w.standIn()
	}()
	return w
}

// listen has sig passed on to w.signals.
func (w watch) listen(sig os.Signal) {
	one := make(chan os.Signal, 1)
	signal.Notify(one, sig)
	go func() {
		for sig := range one {
			w.signals <- sig
		}
	}()
}

// standIn does with signals what would be done if nobody listened, until the job
// begins: they end this process, also while it waits for the lock. A signal of
// the user's own is for the job, and lost while there is none.
func (w watch) standIn() {
	for {
		select {
		case w.begin <- struct{}{}:
			return
		case sig := <-w.signals:
			if sig != unix.SIGUSR1 && sig != unix.SIGUSR2 {
				dieOf(sig.(syscall.Signal))
			}
		}
	}
}

// dieOf ends this process as the signal does by itself: a shell sees the
// difference. Not for QUIT, where the runtime would print a trace, nor for the
// first process of a pid namespace, which the kernel spares.
func dieOf(sig syscall.Signal) {
	if sig == unix.SIGQUIT || unix.Getpid() == 1 {
		os.Exit(128 + int(sig))
	}
	signal.Reset(sig)
	_ = unix.Kill(unix.Getpid(), sig) // nothing can forbid it
	select {}
}

// attend starts to listen for the others, once the job is on its way: until
// then the kernel does with them what is right. TSTP is left to it for good where
// there is a terminal: it stops the whole group, and knows when it must not, as
// nobody would ever continue it.
func (w watch) attend(p place) {
	signal.Notify(w.children, unix.SIGCHLD)
	select {
	case w.children <- unix.SIGCHLD: // for what died before anybody listened
	default:
	}
	signal.Notify(w.continued, unix.SIGCONT)
	if !p.terminal && !signal.Ignored(unix.SIGTSTP) {
		signal.Notify(w.stopped, unix.SIGTSTP)
	}
}

// forward passes sig on to whom it concerns.
func (r *run) forward(sig syscall.Signal) {
	switch {
	case r.ending != nil:
		// The job is being ended: it gets each signal from there, once.
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
		// It came from the keyboard, and the job has it already.
	default:
		// To all: a shell would put it off until its foreground child is gone
		// (facts 2). Parents come first, or they would start their next command.
		r.told = true
		r.signalAll(sig)
	}
}

// isTyped: the terminal sends these to the whole foreground group.
func isTyped(sig syscall.Signal) bool { return sig == unix.SIGINT || sig == unix.SIGQUIT }

// stop stops the job. The signal is STOP: the job may be all of an orphaned group,
// in which TSTP does nothing. This process goes on: a CONT that came just before it
// stopped itself would continue nobody, and one that stands still would neither
// reap nor enforce.
func (r *run) stop() {
	if len(r.continued) == 0 && process.Boottime()-r.resumed >= outdated {
		r.signalAll(unix.SIGSTOP)
	}
}

// resume lets the job go on, whether it was stopped by stop or by others.
func (r *run) resume() {
	r.signalAll(unix.SIGCONT)
	select {
	case <-r.stopped:
	default:
	}
	r.resumed = process.Boottime()
}

// outdated is how much later than a CONT a TSTP may be heard that was sent before
// it: the runtime keeps no order. Of two that come together only the CONT counts,
// as what stops for good holds the atom for good.
const outdated = 100 * time.Millisecond

// signalAll sends sig to every process of the job, parents first. What a nested
// supervisor passes on to its own job is left to that; nobody can pass on STOP.
func (r *run) signalAll(sig syscall.Signal) {
	members, err := r.place.members()
	r.note(err)
	supervised := make(map[int]bool) // whose children have a supervisor of their own
	for _, m := range members {
		supervised[m.PID] = supervised[m.Parent] || m.Supervises()
		if !supervised[m.Parent] || sig == unix.SIGSTOP {
			r.send(m, sig)
		}
	}
}

// signalChild sends sig to the command itself. Its pid is its own until this
// goroutine reaps it.
func (r *run) signalChild(sig syscall.Signal) {
	if r.gone {
		return
	}
	id, err := process.Of(r.pid)
	if err == nil {
		r.send(process.Member{PID: id.PID, Start: id.Start, Command: r.job.Command}, sig)
	}
}

// send signals one process; one that is gone by now needs no signal.
func (r *run) send(m process.Member, sig syscall.Signal) {
	err := m.Signal(sig)
	if errors.Is(err, unix.ESRCH) {
		return
	}
	r.note(err)
	if err == nil && r.job.Observe != nil {
		r.job.Observe(process.Signalled{PID: m.PID, Signal: name(sig), Command: m.Command})
	}
}

// name is the signal's name as kill(1) takes it: "TERM".
func name(sig syscall.Signal) string {
	const prefix = len("SIG")
	return unix.SignalName(sig)[prefix:]
}
