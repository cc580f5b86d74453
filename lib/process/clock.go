package process

import (
	"time"

	"golang.org/x/sys/unix"
)

// Monotonic is, on Linux, the time since boot while this machine was awake: how long a job can have run. Steps
// of the wall clock do not change it; another time namespace shifts it. On other systems it equals Boottime.
func Monotonic() time.Duration { return clock(monotonic) }

// clock reads a clock that every kernel has: clock_gettime(2) fails only for ids that the kernel does not know.
func clock(id int32) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		panic("process: clock_gettime: " + err.Error())
	}
	return time.Duration(ts.Nano())
}
