// Package guarding is the guard process: it ends the job where its locksmith cannot, as
// soon as that has been killed, and before the lease is gone where it is stopped. It
// belongs to no session, group or parent of the job's, so nothing that ends them ends it,
// and no shell waits for it.
//
// It is a process of the locksmith's program that has to begin at once: so it is a package
// of its own, which imports no network (cmd/adlock-locksmith/early).
package guarding

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/hook"
	"adlock/lib/killer"
	"adlock/lib/locker"
	"adlock/lib/process"
	"adlock/lib/record"
	"adlock/lib/runlog"
)

// name is the first argument of a guard.
const name = "adlock-locksmith: guard"

// args are what the guard of this owner has to know, its own name first.
func args(rec locker.Recorder, own record.Record) []string {
	all := []string{name, "", "", "0", ""}
	if log := rec.Log; log != nil {
		all = []string{name, log.Dir, log.Host, strconv.FormatInt(log.Max, 10), log.Store}
	}
	command := ""
	if rec.Hook != nil {
		command = rec.Hook.Command
	}
	return append(all, strconv.Itoa(own.Owner.PID), string(own.Bytes()), command)
}

// order tells the guard to end the job at a boottime, with that pause between the
// signals, unless it is told otherwise by then.
func order(at, pause time.Duration) string {
	return strconv.FormatInt(int64(at), 10) + " " + strconv.FormatInt(int64(pause), 10) + "\n"
}

const (
	dismissal = "done\n"    // sends the guard home
	telling   = "telling\n" // the locksmith has ended the job itself, and tells why
)

// Main is one of the first things that main calls, as supervise.Gate. In a process that
// was started as a guard it does a guard's work and never returns.
func Main() {
	if os.Args[0] == name {
		if len(os.Args) == 8 {
			guarding(os.Args[1:])
		}
		os.Exit(fault.StatusOK)
	}
}

// guarding is the work of a guard.
func guarding(args []string) {
	unix.CloseOnExec(3)
	own, found := record.Parse([]byte(args[5]))
	if found != record.Full {
		return
	}
	pause, why := awaitTrouble(3)
	if why == nil {
		return
	}
	most, _ := strconv.ParseInt(args[2], 10, 64)
	rec := locker.Recorder{Hook: &hook.Hook{Command: args[6]}}
	if args[0] != "" {
		rec.Log = &runlog.Log{Dir: args[0], Host: args[1], Max: most, Store: args[3]}
	}
	r := &locker.Request{Atom: own.Atom, Owner: own.Owner}
	ending := killer.Killer{Pause: pause, Observe: func(s killer.Signalled) { rec.RecordSignal(r, s) }}
	SpeakFor(own.KnownJob(-1))
	if err := ending.End(own.KnownJob(-1)); err != nil {
		why = errors.Join(why, err)
	} else if tells(3, tellTimeout) {
		return
	}
	fault.Report(rec.Lost(locker.Title(own.Atom), locker.ReleaseRequest{Token: own.Token}, own.Atom, &own, why))
}

// awaitTrouble returns what is wrong, once something is, with the pause for the
// end of the job; nil where the guard is not needed any more.
func awaitTrouble(line int) (pause time.Duration, why error) {
	var at time.Duration // 0: not armed
	for {
		left := time.Hour // as long as its owner waits it is not armed
		if at > 0 {
			left = min(5*time.Second, at-process.Boottime()) // timers stand still while the machine is suspended
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

// tellTimeout is how long a guard that has ended the job waits for a locksmith that was only
// late at it: one end is told of once.
const tellTimeout = 5 * time.Second

// tells tells whether the locksmith says within the time that it tells why.
func tells(line int, within time.Duration) bool {
	for end := process.Boottime() + within; ; {
		left := end - process.Boottime()
		if left <= 0 {
			return false
		}
		text, closed := readLine(line, left)
		if strings.Contains(text, telling) || closed {
			return !closed
		}
	}
}

// lastOrder reads what order says; several may have come at once.
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
