//go:build !linux

package process

import "time"

// ThreadOf returns 0: on these systems a thread's id is never taken for a pid.
func ThreadOf(int) int { return 0 }

// Still returns false and 0, which mean unknown: on these systems a stopped process counts as running.
func Still(int) (still bool, age time.Duration) { return false, 0 }
