package hook

import (
	"errors"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"adlock/lib/fault"
	"adlock/lib/runlog"
	"adlock/lib/sysfile"
)

// waiterName is argv[0] of a waiter. It is not a verb, so no person types it. A waiter starts a hook, waits for it, and
// records its failure, as the process that reported the event may have ended by then.
const waiterName = "adlock: hook"

// hookTimeout is how long a hook may take. Tests change it.
var hookTimeout = 30 * time.Second

// Main does the work of a waiter and exits, if this process is one; otherwise it does nothing. main calls it.
func Main() {
	if len(os.Args) == 11 && os.Args[0] == waiterName {
		os.Exit(await(os.Args[1:]))
	}
}

func await(args []string) int {
	most, _ := strconv.ParseInt(args[2], 10, 64)
	log := &runlog.Log{Dir: args[0], Apart: true, Host: args[1], Max: most, Store: args[9]}
	e := runlog.Event{Program: args[3], Host: args[4], Operator: args[5], Operand: args[6]}
	status, err := runCommand(args[8])
	switch {
	case err != nil:
		note(log, e, Kind(args[7]), err.Error())
	case status.Signaled():
		e.Signal = sysfile.SignalName(status.Signal())
		note(log, e, Kind(args[7]), "failed")
	case status.ExitStatus() != 0:
		e.Status = runlog.Some(status.ExitStatus())
		note(log, e, Kind(args[7]), "failed")
	}
	return fault.StatusOK
}

var errTooLong = errors.New("ended: took too long")

// runCommand runs the hook in a session of its own, and kills its process group after hookTimeout. One goroutine
// reaps and signals, so no other process group can get the hook's number before the signal.
func runCommand(command string) (status syscall.WaitStatus, err error) {
	children := make(chan os.Signal, 1)
	signal.Notify(children, unix.SIGCHLD)
	pid, err := syscall.ForkExec("/bin/sh", []string{"sh", "-c", command}, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, err
	}
	up := time.After(hookTimeout)
	for {
		select {
		case <-children:
		case <-up:
			_ = unix.Kill(-pid, unix.SIGKILL)
			err = errTooLong
		}
		for {
			reaped, how := sysfile.Reap()
			if reaped == pid {
				return how, err
			}
			if reaped == 0 {
				break
			}
		}
	}
}

// note records a hook's failure in log, if log has a directory, and reports whether it did.
func note(log *runlog.Log, e runlog.Event, kind Kind, why string) (noted bool) {
	e.Kind, e.Reason = runlog.Hook, "the hook for "+string(kind)+": "+why
	return log.Dir != "" && log.Append(e) == nil
}
