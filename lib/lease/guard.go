package lease

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/lease/guarding"
	"adlock/lib/locker"
	"adlock/lib/orphan"
	"adlock/lib/sysfile"
)

// guard is the locksmith's side of its guard process (package guarding).
type guard struct {
	started chan error
	line    *os.File // our end of a socket pair; nil where it could not be made
	send    sync.Mutex
}

// startGuard starts the guard of the owner in the record, in the background. It
// does nothing until it is armed.
func startGuard(rec locker.Recorder, record Record) *guard {
	g := &guard{started: make(chan error, 1)}
	ours, theirs, err := sysfile.SocketPair()
	if err != nil {
		g.started <- err
		return g
	}
	g.line = os.NewFile(uintptr(ours), "guard")
	go func() {
		defer unix.Close(theirs)
		g.started <- orphan.Start(guarding.Args(rec, record.Record), "/", rec.Hook.Environment(), theirs)
	}()
	return g
}

// ready waits until the guard is started. What it is told before it reads waits
// for it in the socket, also when this process is gone by then.
func (g *guard) ready() error {
	select {
	case err := <-g.started:
		g.started <- nil
		return fault.Wrap("guard", err)
	case <-time.After(questionTimeout):
		return fault.New(fault.System, "guard", "does not start")
	}
}

// isThere is false where there is no guard, where it could not be started, and where it has
// ended; one that is on its way is there.
func (g *guard) isThere() bool {
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

// hungUp tells whether nobody is at the other end of the line.
func (g *guard) hungUp() (gone bool) {
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

// arm tells the guard to end the job at a boottime, with the pause, unless it is
// told otherwise by then; and at once when this process is gone.
func (g *guard) arm(at, pause time.Duration) {
	g.say(guarding.Order(at, pause))
}

// dismiss sends the guard home. Again it does nothing.
func (g *guard) dismiss() {
	if g == nil {
		return
	}
	g.say(guarding.Dismissal)
	g.send.Lock()
	defer g.send.Unlock()
	if g.line != nil {
		g.line.Close()
		g.line = nil
	}
}

// say is lost on a guard that is gone: without it the lease still is what it is.
func (g *guard) say(text string) {
	g.send.Lock()
	defer g.send.Unlock()
	if g.line != nil {
		_, _ = g.line.WriteString(text)
	}
}
