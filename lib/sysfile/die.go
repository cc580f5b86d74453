package sysfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// DieOf ends this process as the signal does by itself, though it is caught, ignored or
// blocked: a shell sees which one it was, and bash takes a Ctrl-C for its script as well only
// where its command died of it. No core is written. A process that the signal cannot end,
// such as the first of a pid namespace, exits with the status that a shell makes of it.
func DieOf(sig unix.Signal) {
	raise(sig)
	os.Exit(128 + int(sig))
}
