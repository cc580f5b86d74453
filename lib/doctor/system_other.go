//go:build !linux

package doctor

import (
	"os"

	"adlock/lib/lockdir/lockfile"
	"adlock/lib/process"
)

// freeSpace is for Linux.
func freeSpace(*lockfile.Dir) []Finding { return nil }

// processes reports whether the process table can be read.
func processes() []Finding {
	if _, err := process.Of(os.Getpid()); err != nil {
		return []Finding{fail("processes", err.Error(), "let this user read it")}
	}
	return []Finding{fine("processes", "can be read")}
}

// limits checks nothing: this is for Linux.
func limits() Finding { return fine("ulimits", "not looked at on this system") }
