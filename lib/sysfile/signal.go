package sysfile

import (
	"os"
	"os/signal"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// SignalName returns the signal's name for kill(1), such as "TERM", else its number; "" for 0.
func SignalName(sig unix.Signal) string {
	if sig == 0 {
		return ""
	}
	if name := unix.SignalName(sig); name != "" {
		return strings.TrimPrefix(name, "SIG")
	}
	return strconv.Itoa(int(sig))
}

// CatchEnds returns a channel that gets HUP, INT and TERM, except those that were ignored at the start.
func CatchEnds() chan os.Signal {
	caught := make(chan os.Signal, 1)
	for _, sig := range []os.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGTERM} {
		if !signal.Ignored(sig) {
			signal.Notify(caught, sig)
		}
	}
	return caught
}
