package sysfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// DieOf ends this process by the signal, without a core, even if the signal is caught, ignored or blocked.
// Shells rely on that: bash ends a script at Ctrl-C only if its command died of INT. If the signal cannot end this
// process (it is the first of a pid namespace, or the system is not Linux: raise), it exits with a shell's status.
func DieOf(sig unix.Signal) {
	raise(sig)
	os.Exit(128 + int(sig))
}
