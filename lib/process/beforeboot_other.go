//go:build !linux

package process

import "time"

// BeforeBoot is false: on these systems it is not certain.
func BeforeBoot(time.Time) bool { return false }
