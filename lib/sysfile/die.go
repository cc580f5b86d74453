package sysfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// DieOf ends this process by the signal, without a core, even if the signal is caught, ignored or blocked.
// Shells rely on that: bash ends a script at Ctrl-C only if its command died of INT. If the signal cannot end this
// process (the first of a pid namespace, or not on Linux: raise), it exits with the status that a shell gives.
func DieOf(sig unix.Signal) {
	raise(sig)
	os.Exit(128 + int(sig))
}
