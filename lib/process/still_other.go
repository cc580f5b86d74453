//go:build !linux

package process

import "time"

// ThreadOf: on these systems a thread's id is never taken for a pid.
func ThreadOf(int) int { return 0 }

// Still is asked only about the holder of a guard, which these systems do not name.
func Still(int) (still bool, age time.Duration) { return false, 0 }
