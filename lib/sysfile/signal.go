package sysfile

import (
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
