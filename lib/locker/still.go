package locker

import (
	"errors"
	"strconv"
	"time"

	"adlock/lib/process"
)

// StandsStill returns an error if the process pid (0: unknown) is stopped and was started at least longest
// ago; no change of a lock takes longer than that.
func StandsStill(pid int, longest time.Duration) error {
	if pid == 0 {
		return nil
	}
	if still, age := process.Still(pid); still && age >= longest {
		return errors.New("process " + strconv.Itoa(pid) + ", which is changing the lock, is stopped")
	}
	return nil
}

// ToGoOn returns the advice for a process that is stopped.
func ToGoOn(pid int) string { return "to let it go on: kill -CONT " + strconv.Itoa(pid) }
