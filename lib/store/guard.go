package store

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/atom"
	"adlock/lib/exit"
	"adlock/lib/process"
	"adlock/lib/runlog"
)

// guard is a process that ends the job where its locksmith cannot: as soon as it
// has been killed, and before the lease is gone where it is stopped. It belongs
// to no session, group or parent of the job's, so nothing that ends them ends
// it, and no shell waits for it.
type guard struct {
	started chan error
	line    *os.File // our end of a socket pair; nil where it could not be made
	send    sync.Mutex
}

// How orphans are started: by way of a process that exits at once. Guards are
// some.
const (
	orphanStarts = "adlock-locksmith: start"
	guardName    = "adlock-locksmith: guard"
)

// startGuard starts the guard of the owner in the record, in the background. It
// does nothing until it is armed.
func startGuard(log *runlog.Log, record Record) *guard {
	g := &guard{started: make(chan error, 1)}
	ours, theirs, err := Socketpair()
	if err != nil {
		g.started <- err
		return g
	}
	g.line = os.NewFile(uintptr(ours), "guard")
	go func() {
		defer unix.Close(theirs)
		g.started <- StartOrphan(guardArgs(log, record), theirs)
	}()
	return g
}

// ready waits until the guard is started. What it is told before it reads waits
// for it in the socket, also when this process is gone by then.
func (g *guard) ready() error {
	select {
	case err := <-g.started:
		g.started <- nil
		return exit.Wrap("guard", err)
	case <-time.After(patience):
		return exit.New(exit.System, "guard", "does not start")
	}
}

// arm tells the guard to end the job at a boottime, with the pause, unless it is
// told otherwise by then; and at once when this process is gone.
func (g *guard) arm(at, pause time.Duration) {
	g.say(strconv.FormatInt(int64(at), 10) + " " + strconv.FormatInt(int64(pause), 10) + "\n")
}

// dismiss sends the guard home. Again it does nothing.
func (g *guard) dismiss() {
	if g == nil {
		return
	}
	g.say("done\n")
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

// guardArgs are what the guard has to know; guarded reads them.
func guardArgs(log *runlog.Log, record Record) []string {
	args := []string{guardName, "", "", "0"}
	if log != nil {
		args = []string{guardName, log.Dir, log.Host, strconv.FormatInt(log.Max, 10)}
	}
	args = append(args, strconv.Itoa(record.Owner.PID), string(record.Bytes()))
	return args
}

// Guard is the first thing that main calls, as supervise.Gate. In a process that
// was started as a guard it does a guard's work and never returns.
func Guard() {
	switch os.Args[0] {
	case orphanStarts:
		os.Exit(orphan(os.Args[1:]))
	case guardName:
		if len(os.Args) == 6 {
			guarding(os.Args[1:])
		}
		os.Exit(exit.OK)
	}
}

// guarding is the work of a guard.
func guarding(args []string) {
	unix.CloseOnExec(3)
	record, err := ParseRecord("guard", []byte(args[4]))
	if err != nil {
		return
	}
	pause, why := awaitTrouble(3)
	if why == nil {
		return
	}
	most, _ := strconv.ParseInt(args[2], 10, 64)
	scribe := atom.NewScribe(&runlog.Log{Dir: args[0], Host: args[1], Max: most})
	if args[0] == "" {
		scribe = atom.NewScribe(nil)
	}
	r := &atom.Request{Atom: record.Atom, Owner: record.Owner}
	killer := process.Killer{Pause: pause, Observe: func(s process.Signalled) { scribe.RecordSignal(r, s) }}
	if err := killer.End(record.KnownJob(-1)); err != nil {
		why = errors.Join(why, err)
	}
	_ = scribe.Lost("guard", record.Record, why) // the record has it; nobody else is there to be told
}

// awaitTrouble returns what is wrong, once something is, with the pause for the
// end of the job; nil where the guard is not needed any more.
func awaitTrouble(line int) (pause time.Duration, why error) {
	var at time.Duration // 0: not armed
	for {
		left := 5 * time.Second // timers stand still while the machine is suspended
		if at > 0 {
			left = min(left, at-process.Boottime())
		}
		if left <= 0 {
			return pause, errors.New("the locksmith has fallen silent: the guard ended the job")
		}
		text, closed := readLine(line, left)
		switch {
		case strings.Contains(text, "done"), closed && at == 0:
			return 0, nil
		case closed:
			// Most of the lease may be left: no need to hurry more than that.
			return max(pause, min(4*pause, (at-process.Boottime())/3)), errors.New("the locksmith was killed: the guard ended the job")
		case text != "":
			at, pause = lastOrder(text)
		}
	}
}

// lastOrder reads what arm says; several may have come at once.
func lastOrder(text string) (at, pause time.Duration) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	first, second, _ := strings.Cut(lines[len(lines)-1], " ")
	ats, _ := strconv.ParseInt(first, 10, 64)
	pauses, _ := strconv.ParseInt(second, 10, 64)
	return time.Duration(ats), time.Duration(pauses)
}

// readLine returns what there is to read within the time.
func readLine(line int, within time.Duration) (text string, closed bool) {
	polled := []unix.PollFd{{Fd: int32(line), Events: unix.POLLIN}}
	n, err := unix.Poll(polled, int(within.Milliseconds())+1)
	if n <= 0 || err != nil {
		return "", false
	}
	buffer := make([]byte, 4096)
	got, err := unix.Read(line, buffer)
	if err == unix.EINTR || err == unix.EAGAIN {
		return "", false
	}
	return string(buffer[:max(got, 0)]), got <= 0
}
