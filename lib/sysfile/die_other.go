//go:build !linux

package sysfile

import (
	"os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// raise ends this process only by KILL and the signals whose default action the runtime can restore.
func raise(sig unix.Signal) {
	switch sig {
	case unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGKILL:
		signal.Reset(sig)
		_ = unix.Kill(unix.Getpid(), sig)
		time.Sleep(time.Second) // another thread may receive the signal
	}
}
