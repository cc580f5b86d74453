//go:build !linux

package watchdog

import "adlock/lib/process"

// SpeakFor does nothing on a system that does not let one process open another's descriptors: the
// runlog and the hook get the report in any case.
func SpeakFor(process.Job) {}
