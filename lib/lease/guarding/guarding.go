// Package guarding is the watchdog of a locksmith, the guard process: it ends the job if the
// locksmith cannot, at once if the locksmith is killed, and before the lease is over if it is
// stopped. The guard is in no session or group of the job and is no child of it, so no signal to
// these ends it, and no shell waits for it.
//
// It runs the locksmith's program and must begin at once: so it is a package of its own that
// imports no network (cmd/adlock-locksmith/early).
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
	dismissal = "done\n"    // ends the guard
	telling   = "telling\n" // the locksmith has ended the job itself, and reports why
)

// Main is one of the first calls of main, like supervise.Gate. In a process that was started as a
// guard it does the guard's work and never returns.
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

// awaitTrouble returns what is wrong, once something is, with the pause for ending the job; nil
// once the guard is no longer needed.
func awaitTrouble(line int) (pause time.Duration, why error) {
	var at time.Duration // 0: not armed
	for {
		left := time.Hour // it is not armed while its owner waits
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
			// Most of the lease may be left: then the job gets longer pauses.
			return max(pause, min(4*pause, (at-process.Boottime())/3)), errors.New("the locksmith was killed: the guard ended the job")
		case text != "":
			at, pause = lastOrder(text)
		}
	}
}

// tellTimeout is how long a guard that has ended the job waits for a locksmith that was only
// late: one ending is reported once.
const tellTimeout = 5 * time.Second

// tells tells whether the locksmith says within the time that it reports why.
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

// lastOrder reads the last of the orders that came at once.
func lastOrder(text string) (at, pause time.Duration) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	first, second, _ := strings.Cut(lines[len(lines)-1], " ")
	ats, _ := strconv.ParseInt(first, 10, 64)
	pauses, _ := strconv.ParseInt(second, 10, 64)
	return time.Duration(ats), time.Duration(pauses)
}

// readLine returns what can be read within the time.
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
