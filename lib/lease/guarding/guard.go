package guarding

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/locker"
	"adlock/lib/orphan"
	"adlock/lib/record"
	"adlock/lib/sysfile"
)

// Guard is the locksmith's side of its watchdog, the guard process.
type Guard struct {
	started chan error
	line    *os.File // the locksmith's end of a socket pair; nil if it could not be made
	send    sync.Mutex
}

// Start starts the guard of the owner in the record, in the background. The guard does nothing
// until it is armed.
func Start(rec locker.Recorder, own record.Record) *Guard {
	g := &Guard{started: make(chan error, 1)}
	ours, theirs, err := sysfile.SocketPair()
	if err != nil {
		g.started <- err
		return g
	}
	g.line = os.NewFile(uintptr(ours), "guard")
	go func() {
		err := orphan.Start(args(rec, own), "/", rec.Hook.Environment(), theirs)
		unix.Close(theirs) // so that the line hangs up when the guard does
		g.started <- err
	}()
	return g
}

// startTimeout is how long a guard may take to start.
const startTimeout = 5 * time.Second

// Ready waits until the guard is started. Messages sent before it reads wait in the socket, even
// if this process is gone by then.
func (g *Guard) Ready() error {
	timer := time.NewTimer(startTimeout)
	defer timer.Stop()
	select {
	case err := <-g.started:
		return g.has(err)
	case <-timer.C:
	}
	select { // after a standstill both are ready
	case err := <-g.started:
		return g.has(err)
	default:
		return fault.New(fault.System, "guard", "does not start")
	}
}

func (g *Guard) has(started error) error {
	g.started <- started
	return fault.Wrap("guard", started)
}

// IsThere is false if there is no guard, if it could not be started, and if it has ended; a guard
// that is starting is there.
func (g *Guard) IsThere() bool {
	if g == nil || g.line == nil {
		return false
	}
	select {
	case err := <-g.started:
		g.started <- err
		if err != nil {
			return false
		}
	default:
	}
	return !g.hungUp()
}

// hungUp tells whether the other end of the line is closed.
func (g *Guard) hungUp() (gone bool) {
	line, err := g.line.SyscallConn()
	if err == nil {
		err = line.Control(func(fd uintptr) {
			polled := []unix.PollFd{{Fd: int32(fd)}}
			_, err := unix.Poll(polled, 0)
			gone = err == nil && polled[0].Revents&unix.POLLHUP != 0
		})
	}
	return gone || err != nil
}

// Arm tells the guard to end the job at a boottime, with the pause, unless it is told otherwise
// by then; and at once when this process is gone.
func (g *Guard) Arm(at, pause time.Duration) {
	g.say(order(at, pause))
}

// TellsWhy tells the guard that the locksmith has ended the job itself, and reports why.
func (g *Guard) TellsWhy() { g.say(telling) }

// Dismiss ends the guard. A second call does nothing.
func (g *Guard) Dismiss() {
	if g == nil {
		return
	}
	g.say(dismissal)
	g.send.Lock()
	defer g.send.Unlock()
	if g.line != nil {
		g.line.Close()
		g.line = nil
	}
}

// say is lost if the guard is gone: the lease alone still holds.
func (g *Guard) say(text string) {
	g.send.Lock()
	defer g.send.Unlock()
	if g.line != nil {
		_, _ = g.line.WriteString(text)
	}
}
