package process

import (
	"time"

	"golang.org/x/sys/unix"
)

// Boottime is the time since this machine was booted, suspended or not. Steps
// of the wall clock do not touch it; another time namespace shifts it.
func Boottime() time.Duration { return clock(unix.CLOCK_BOOTTIME) }
