package sysfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// DieOf ends this process by the signal, even if that is caught, ignored or blocked, without a core:
// bash ends its own script at Ctrl-C only if the command died of INT. If the signal cannot end it (the
// first process of a pid namespace), it exits with the status that a shell gives for the signal.
func DieOf(sig unix.Signal) {
	raise(sig)
	os.Exit(128 + int(sig))
}
