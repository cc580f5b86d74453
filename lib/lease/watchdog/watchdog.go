// Package watchdog runs a process that ends the job if the locksmith cannot: at once if the locksmith is
// killed, and before the lease is over if the locksmith is stopped. The watchdog is in no session or group of
// the job, and is no child of it: a signal to the job does not end it, and no shell waits for it.
//
// The watchdog runs the locksmith's program and must begin at once: so this package imports no client of a
// store (cmd/adlock-locksmith/early).
package watchdog

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
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

const name = "adlock-locksmith: watchdog"

func args(rec locker.Recorder, own record.Record) []string {
	all := []string{name, "", "", "0", ""}
	if log := rec.Log; log != nil {
		all = []string{name, log.Dir, log.Host, strconv.FormatInt(log.Max, 10), log.Store}
	}
	h := cmp.Or(rec.Hook, &hook.Hook{})
	return append(all, strconv.Itoa(own.Owner.PID), string(own.Bytes()), h.Command, strconv.FormatBool(h.Syslog))
}

// order is the message that makes the watchdog end the job at a boottime, with that pause between
// the signals, unless another message comes before.
func order(at, pause time.Duration) string {
	return strconv.FormatInt(int64(at), 10) + " " + strconv.FormatInt(int64(pause), 10) + "\n"
}

const (
	dismissal = "done\n"    // ends the watchdog
	reporting = "telling\n" // the locksmith has ended the job, and reports why before it dismisses the watchdog
)

// Main is one of the first calls of a program, like supervise.Gate. In a process that was started as a
// watchdog it does the watchdog's work and never returns.
func Main() {
	if os.Args[0] == name {
		if len(os.Args) == 9 {
			watch(os.Args[1:])
		}
		os.Exit(fault.StatusOK)
	}
}

func watch(args []string) {
	unix.CloseOnExec(3)
	own, _, found := record.ParseAll([]byte(args[5]))
	if found != record.Full {
		return
	}
	heard := locksmith{line: 3}
	pause, why := heard.awaitTrouble()
	if why == nil {
		return
	}
	most, _ := strconv.ParseInt(args[2], 10, 64)
	rec := locker.Recorder{Hook: &hook.Hook{Command: args[6], Syslog: args[7] == "true"}}
	if args[0] != "" {
		rec.Log = &runlog.Log{Dir: args[0], Apart: true, Host: args[1], Max: most, Store: args[3]}
	}
	r := &locker.Request{Atom: own.Atom, Owner: own.Owner}
	ending := killer.Killer{Pause: pause, Enough: heard.hasEnded, Observe: func(s killer.Signalled) {
		heard.signalled = true
		rec.RecordSignal(r, s)
	}}
	spoken := speakAs(own.Owner.Key())                       // before the ending: an ended owner has no standard error to open
	ending.Record = func(members []process.Identity) error { // the killer has found these: another search would cost time
		spoken = spoken || slices.ContainsFunc(members, func(m process.Identity) bool { return speakAs(m.Key()) })
		return nil
	}
	var err error
	if !heard.hasEnded() {
		_, _ = unix.Write(heard.line, []byte("acts\n")) // for LeaveReportIfActed; the locksmith may be gone
		err = ending.End(own.KnownJob(-1))
	}
	if err == nil && heard.reports(reportTimeout) {
		return
	}
	if !spoken { // the killer was not called, or refused the job
		SpeakFor(own.KnownJob(-1))
	}
	why = errors.Join(why, err)
	fault.Report(rec.Lost(locker.Title(own.Atom), locker.ReleaseRequest{Token: own.Token}, own.Atom, &own, why))
}

type locksmith struct {
	line                       int
	reporting, dismissed, gone bool
	signalled                  bool
}

func (l *locksmith) hear(within time.Duration) (text string) {
	text, closed := readLine(l.line, within)
	l.reporting = l.reporting || strings.Contains(text, reporting)
	l.dismissed = l.dismissed || strings.Contains(text, dismissal)
	l.gone = l.gone || closed
	return text
}

// awaitTrouble waits until the job has to be ended, or the locksmith reports that it has ended the job. It
// returns the reason and the pause between the signals; nil if the watchdog is no longer needed.
func (l *locksmith) awaitTrouble() (pause time.Duration, why error) {
	var at time.Duration // 0: not armed
	for {
		left := time.Hour // not armed: the locksmith still waits for the atom
		if at > 0 {
			left = min(5*time.Second, at-process.Boottime()) // timers stand still while the machine is suspended
		}
		text := l.hear(max(0, left)) // an order may have come while this process stood still
		if text != "" {
			at, pause = lastOrder(text)
		}
		switch {
		case l.dismissed, l.gone && at == 0:
			return 0, nil
		case l.reporting:
			return 0, errors.New("the locksmith ended the job, and died before it could report why")
		case l.gone: // if most of the lease is left, the job gets longer pauses
			return max(pause, min(4*pause, (at-process.Boottime())/3)), errors.New("the locksmith was killed: the watchdog ended the job")
		case left <= 0 && text == "":
			return pause, errors.New("the locksmith has fallen silent: the watchdog ended the job")
		}
	}
}

// hasEnded reports whether the locksmith has ended the job, or released the lock. What runs after that is no part of it.
func (l *locksmith) hasEnded() bool {
	l.hear(0)
	return l.reporting || l.dismissed
}

// reportTimeout is how long a watchdog that has ended the job waits for a message of the locksmith:
// if the locksmith was only late, the locksmith reports the ending, and the watchdog does not.
const reportTimeout = 5 * time.Second

// reports returns true if the locksmith dismisses the watchdog in time, and reports the ending, or no signal was sent.
func (l *locksmith) reports(within time.Duration) bool {
	for end := process.Boottime() + within; !l.dismissed && !l.gone; {
		left := end - process.Boottime()
		if l.reporting {
			left = time.Hour // the locksmith tries to release until the lease is over
		}
		if left <= 0 {
			return false
		}
		l.hear(left)
	}
	return l.dismissed && (l.reporting || !l.signalled)
}

// lastOrder parses the last of the orders in text: several may have come in one read.
func lastOrder(text string) (at, pause time.Duration) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	_, _ = fmt.Sscanf(lines[len(lines)-1], "%d %d", &at, &pause) // fails for a message that is no order
	return at, pause
}

func readLine(line int, within time.Duration) (text string, closed bool) {
	polled := []unix.PollFd{{Fd: int32(line), Events: unix.POLLIN}}
	buffer := make([]byte, 4096)
	for wait := int(within.Milliseconds()) + 1; ; wait = 0 {
		if n, err := unix.Poll(polled, wait); n <= 0 || err != nil {
			return text, false
		}
		got, err := unix.Read(line, buffer)
		if got <= 0 {
			return text, err != unix.EINTR && err != unix.EAGAIN
		}
		text += string(buffer[:got]) // read on: only the last order counts
	}
}
