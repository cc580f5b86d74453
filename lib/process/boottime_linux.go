package process

import (
	"time"

	"golang.org/x/sys/unix"
)

const monotonic = unix.CLOCK_MONOTONIC

// Boottime is the time since this machine was booted, suspend included. Steps of the wall clock
// do not change it; another time namespace shifts it.
func Boottime() time.Duration { return clock(unix.CLOCK_BOOTTIME) }

// StartNow returns what Identity.Start is for a process that is forked now.
func StartNow() uint64 { return startAt(Boottime()) }
