package run

import (
	"strconv"

	"adlock/lib/config"
	"adlock/lib/fault"
)

// environment are the settings without an option: they are not those of one lock.
var environment = [][2]string{
	{"ADLOCK_DIR", "the lock directory (default /var/lib/adlock for root; for others /var/lib/adlock-UID where it is theirs, else ~/.local/state/adlock)"},
	{"ADLOCK_LOGDIR", "where the runlog is (default the lock directory)"},
	{"ADLOCK_LOG_MAX", "bytes past which the runlog is turned over (default 10 MiB)"},
	{"ADLOCK_LEASE", "how long a store beyond this machine keeps the lock of a silent owner (6s to 1h, default 15s)"},
}

// more is the rest of the help, after the options.
func more() []config.List {
	status := func(number int, means string) [2]string { return [2]string{strconv.Itoa(number), means} }
	return []config.List{
		{Title: "environment", Lines: environment},
		{Title: "exit statuses", Lines: [][2]string{
			{"the job's", "the job ran; if a signal ended it, adlock dies of that signal (a shell shows 128 + its number)"},
			status(fault.StatusUsage, "usage: the line says what"),
			status(fault.StatusUnavailable, "a part that is needed is missing or unreachable"),
			status(fault.StatusSystem, "a system call failed"),
			status(fault.StatusCannotCreate, "a file or directory cannot be made"),
			status(fault.StatusIO, "input/output error, disk full, a damaged lock"),
			status(fault.StatusDenied, "denied: busy, too soon, full, lost (-E N makes it N)"),
			status(fault.StatusNotPermitted, "not permitted, or stuck"),
			status(fault.StatusExpired, "--enforce ended the job at ExpireAfter"),
			status(fault.StatusNotRunnable, "the command cannot be run"),
			status(fault.StatusNoCommand, "the command is not found"),
		}},
	}
}
