//go:build !linux

package process

import "time"

// Boottime is a time that steps of the wall clock do not change, counted from an instant that is
// fixed for this boot. Whether it counts suspend is the system's choice.
func Boottime() time.Duration { return clock(monotonic) }

// StartNow returns what Identity.Start is for a process that is forked now, unless the clock is set at this moment.
func StartNow() uint64 { return uint64(time.Now().UnixMicro()) }
