//go:build !linux

package process

import "time"

// BeforeBoot is false: on these systems it is not certain that a time lies before this boot.
func BeforeBoot(time.Time) bool { return false }
