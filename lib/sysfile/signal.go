package sysfile

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// SignalName is the signal as for kill(1): "TERM", and the number if it has no name of its own (a
// real-time signal). It is empty for 0, no signal.
func SignalName(sig unix.Signal) string {
	if sig == 0 {
		return ""
	}
	if name := unix.SignalName(sig); name != "" {
		return strings.TrimPrefix(name, "SIG")
	}
	return strconv.Itoa(int(sig))
}
