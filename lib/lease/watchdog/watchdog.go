// Package watchdog is a process that ends the job if the locksmith cannot: at once if the locksmith
// is killed, and before the lease is over if the locksmith is stopped. The watchdog is in no
// session or group of the job and is no child of it. So no signal to these ends the watchdog, and
// no shell waits for it.
//
// It runs the locksmith's program and must begin at once: so it is a package of its own that
// imports no network (cmd/adlock-locksmith/early).
package watchdog

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

// name is the first argument of a watchdog.
const name = "adlock-locksmith: watchdog"

// args are the arguments of the watchdog of this owner, the name first.
func args(rec locker.Recorder, own record.Record) []string {
	all := []string{name, "", "", "0", ""}
	if log := rec.Log; log != nil {
		all = []string{name, log.Dir, log.Host, strconv.FormatInt(log.Max, 10), log.Store}
	}
	h := rec.Hook
	if h == nil {
		h = &hook.Hook{}
	}
	return append(all, strconv.Itoa(own.Owner.PID), string(own.Bytes()), h.Command, strconv.FormatBool(h.Syslog))
}

// order is the message that makes the watchdog end the job at a boottime, with that pause between
// the signals, unless another message comes before.
func order(at, pause time.Duration) string {
	return strconv.FormatInt(int64(at), 10) + " " + strconv.FormatInt(int64(pause), 10) + "\n"
}

const (
	dismissal = "done\n"    // ends the watchdog
	reporting = "telling\n" // the locksmith has ended the job itself, and reports why
)

// Main is one of the first calls of main, like supervise.Gate. In a process that was started as a
// watchdog it does the watchdog's work and never returns.
func Main() {
	if os.Args[0] == name {
		if len(os.Args) == 9 {
			watch(os.Args[1:])
		}
		os.Exit(fault.StatusOK)
	}
}

// watch does the work of a watchdog, with the arguments that args made.
func watch(args []string) {
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
	rec := locker.Recorder{Hook: &hook.Hook{Command: args[6], Syslog: args[7] == "true"}}
	if args[0] != "" {
		rec.Log = &runlog.Log{Dir: args[0], Apart: true, Host: args[1], Max: most, Store: args[3]}
	}
	r := &locker.Request{Atom: own.Atom, Owner: own.Owner}
	ending := killer.Killer{Pause: pause, Observe: func(s killer.Signalled) { rec.RecordSignal(r, s) }}
	SpeakFor(own.KnownJob(-1))
	if err := ending.End(own.KnownJob(-1)); err != nil {
		why = errors.Join(why, err)
	} else if reports(3, reportTimeout) {
		return
	}
	fault.Report(rec.Lost(locker.Title(own.Atom), locker.ReleaseRequest{Token: own.Token}, own.Atom, &own, why))
}

// awaitTrouble waits until the job has to be ended, and returns the reason with the pause between
// the signals. The reason is nil if the watchdog is no longer needed.
func awaitTrouble(line int) (pause time.Duration, why error) {
	var at time.Duration // 0: not armed
	for {
		left := time.Hour // not armed: its owner waits
		if at > 0 {
			left = min(5*time.Second, at-process.Boottime()) // timers stand still while the machine is suspended
		}
		if left <= 0 {
			return pause, errors.New("the locksmith has fallen silent: the watchdog ended the job")
		}
		text, closed := readLine(line, left)
		switch {
		case strings.Contains(text, "done"), closed && at == 0:
			return 0, nil
		case closed:
			// If most of the lease is left, the job gets longer pauses.
			return max(pause, min(4*pause, (at-process.Boottime())/3)), errors.New("the locksmith was killed: the watchdog ended the job")
		case text != "":
			at, pause = lastOrder(text)
		}
	}
}

// reportTimeout is how long a watchdog that has ended the job waits for a message of the locksmith:
// if the locksmith was only late, the locksmith reports the ending, and the watchdog does not.
const reportTimeout = 5 * time.Second

// reports is true if the locksmith announces within that time that it reports the ending itself.
func reports(line int, within time.Duration) bool {
	for end := process.Boottime() + within; ; {
		left := end - process.Boottime()
		if left <= 0 {
			return false
		}
		text, closed := readLine(line, left)
		if strings.Contains(text, reporting) || closed {
			return !closed
		}
	}
}

// lastOrder parses the last of the orders in text: several may have come in one read.
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
