package sysfile

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// SignalName is the signal as kill(1) takes it: "TERM", and the number where it
// has no name of its own (a real-time signal). It is empty for 0, no signal.
func SignalName(sig unix.Signal) string {
	if sig == 0 {
		return ""
	}
	if name := unix.SignalName(sig); name != "" {
		return strings.TrimPrefix(name, "SIG")
	}
	return strconv.Itoa(int(sig))
}
