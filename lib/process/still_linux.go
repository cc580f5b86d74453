package process

import "time"

// Still reports whether a process is stopped, by a signal or a debugger, and its age; false and 0 if it cannot be read.
func Still(pid int) (still bool, age time.Duration) {
	e, err := look(pid)
	if err != nil {
		return still, age
	}
	return e.Stopped || e.Traced, Boottime() - time.Duration(e.Start)*clockTick
}
