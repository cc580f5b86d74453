package watchdog

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/lib/sysfile"
)

// Watchdog is the locksmith's side of the watchdog process.
type Watchdog struct {
	started chan error
	line    *os.File // the locksmith's end of a socket pair; nil: there is none
	sending sync.Mutex
}

// Start starts the watchdog of the owner in the record, in the background. Until armed, it does nothing.
func Start(rec locker.Recorder, own record.Record) *Watchdog {
	w := &Watchdog{started: make(chan error, 1)}
	if own.Owner.PID == 1 { // it would wait for its child, the watchdog, which may not end its own ancestor's job
		w.started <- nil
		return w
	}
	ours, theirs, err := sysfile.SocketPair()
	if err != nil {
		w.started <- err
		return w
	}
	w.line = os.NewFile(uintptr(ours), "watchdog")
	go func() {
		err := process.StartOrphan(args(rec, own), "/", rec.Hook.Environment(), theirs)
		unix.Close(theirs) // only the watchdog has this end open now: hungUp finds out when it ends
		w.started <- err
	}()
	return w
}

const startTimeout = 5 * time.Second

// Ready waits, for startTimeout at most, until the watchdog is started. Messages that it has not read yet
// stay in the socket, even if this process ends.
func (w *Watchdog) Ready() error {
	select {
	case err := <-w.started:
		return w.has(err)
	case <-time.After(startTimeout):
	}
	select { // if this process was stopped, both may be ready
	case err := <-w.started:
		return w.has(err)
	default:
		return fault.New(fault.System, "watchdog", "does not start")
	}
}

func (w *Watchdog) has(started error) error {
	w.started <- started
	return fault.Wrap("watchdog", started)
}

// IsThere reports whether the watchdog is starting or runs; false if it could not start, has ended, or is nil.
func (w *Watchdog) IsThere() bool {
	if w == nil || w.line == nil {
		return false
	}
	select {
	case err := <-w.started:
		w.started <- err
		if err != nil {
			return false
		}
	default:
	}
	return !w.hungUp()
}

func (w *Watchdog) hungUp() bool { return sysfile.Poll(int(w.line.Fd()), 0)&unix.POLLHUP != 0 }

// Arm makes the watchdog end the job at a boottime, or at once when this process is gone. Pause is the time between the
// signals; the watchdog may lengthen it if this process is gone early. A later message replaces this one.
func (w *Watchdog) Arm(at, pause time.Duration) {
	w.send(order(at, pause))
}

// ReportsWhy announces to the watchdog that this process, the locksmith, has ended the job and will report
// why. The watchdog ends nothing from then on; if it is not dismissed, it reports instead.
func (w *Watchdog) ReportsWhy() { w.send(reporting) }

// LeaveReportIfActed returns true if the watchdog has begun to end the job: then it stops that, and reports why.
func (w *Watchdog) LeaveReportIfActed() bool {
	text, _ := readLine(int(w.line.Fd()), 0) // "" if there is none
	if text != "" {
		w.hangUp(reporting)
	}
	return text != ""
}

// Dismiss ends the watchdog. A second call does nothing.
func (w *Watchdog) Dismiss() {
	if w != nil {
		w.hangUp(dismissal)
	}
}

func (w *Watchdog) hangUp(last string) {
	w.send(last)
	w.sending.Lock()
	defer w.sending.Unlock()
	if w.line != nil {
		w.line.Close()
		w.line = nil
	}
}

// send sends a message. Without a watchdog the message is lost, and only the locksmith limits the job.
func (w *Watchdog) send(text string) {
	w.sending.Lock()
	defer w.sending.Unlock()
	if w.line == nil {
		return
	}
	line := int(w.line.Fd())
	if unix.Send(line, []byte(text), unix.MSG_DONTWAIT) == unix.EAGAIN { // it stands still: later it would end the job by an old order
		_ = unix.SetsockoptInt(line, unix.SOL_SOCKET, unix.SO_SNDBUF, 1<<20) // makes room
		_ = unix.Send(line, []byte(dismissal), unix.MSG_DONTWAIT)
	}
}
