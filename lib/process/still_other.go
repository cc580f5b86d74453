//go:build !linux

package process

import "time"

// ThreadOf returns 0: on these systems a thread's id is never taken for a pid.
func ThreadOf(int) int { return 0 }

// Still is false: it is called only for the holder of a guard, which these systems do not show.
func Still(int) (still bool, age time.Duration) { return false, 0 }
