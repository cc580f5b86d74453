//go:build !linux

package doctor

import (
	"os"

	"adlock/lib/process"
)

func freeSpace(string, int64, string) []Finding { return nil }

func processes() []Finding {
	if _, err := process.Of(os.Getpid()); err != nil {
		return []Finding{fail("processes", err.Error(), "let this user read it")}
	}
	return []Finding{fine("processes", "can be read")}
}

func limits() Finding { return fine("ulimits", "not looked at on this system") }
