//go:build !linux

package sysfile

import (
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// raise returns where the signal has not ended this process: those alone that the runtime
// can give back, and KILL, do.
func raise(sig unix.Signal) {
	switch sig {
	case unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGKILL:
		signal.Reset(sig)
		_ = unix.Kill(unix.Getpid(), sig)
		time.Sleep(time.Second) // another thread may be the one to take it
	}
}
