package sysfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// DieOf ends this process by the signal, even if the signal is caught, ignored or blocked. So
// the caller's shell sees which signal it was: bash ends its own script at Ctrl-C only if the
// command died of INT. No core is written. A process that the signal cannot end, such as the
// first of a pid namespace, exits with the status that a shell gives for the signal.
func DieOf(sig unix.Signal) {
	raise(sig)
	os.Exit(128 + int(sig))
}
