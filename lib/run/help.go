package run

import (
	"strconv"

	"adlock/lib/config"
	"adlock/lib/fault"
)

func more() []config.List {
	status := func(number int, means string) [2]string { return [2]string{strconv.Itoa(number), means} }
	return []config.List{
		{Title: "environment", Lines: config.Alone()},
		{Title: "exit statuses", Lines: [][2]string{
			{"the job's", "the job ran; if a signal ended it, adlock dies of that signal (a shell shows 128 + its number)"},
			status(fault.StatusUsage, "usage: the line says what"),
			status(fault.StatusUnavailable, "a part that is needed is missing or unreachable"),
			status(fault.StatusSystem, "a system call failed"),
			status(fault.StatusCannotCreate, "a file or directory cannot be made"),
			status(fault.StatusIO, "input/output error, disk full, a damaged lock"),
			status(fault.StatusDenied, "denied: busy, too soon, full, paused (-E N makes it N)"),
			status(fault.StatusNotPermitted, "not permitted, or stuck"),
			status(fault.StatusExpired, "--enforce ended the job at ExpireAfter"),
			status(fault.StatusNotRunnable, "the command cannot be run"),
			status(fault.StatusNoCommand, "the command is not found"),
		}},
	}
}
