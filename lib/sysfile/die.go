package sysfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// DieOf ends this process by the signal, even if the signal is caught, ignored or blocked. The
// caller's shell can then tell which signal it was: bash ends its own script at Ctrl-C only if the
// command died of INT. No core is written. If the signal cannot end this process, such as the first
// process of a pid namespace, DieOf exits with the status that a shell gives for the signal.
func DieOf(sig unix.Signal) {
	raise(sig)
	os.Exit(128 + int(sig))
}
