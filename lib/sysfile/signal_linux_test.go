package sysfile

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestTheShellsKillAcceptsSignalNames(t *testing.T) {
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGKILL, unix.SIGHUP, unix.SIGUSR1, 40} {
		c := start(t, `kill -s "$1" $$; read word`, SignalName(sig))
		status, err := Wait(c.Process.Pid)
		if err != nil || !status.Signaled() || status.Signal() != sig {
			t.Errorf("%q: %v, status %#x, want signal %d", SignalName(sig), err, status, sig)
		}
	}
}

func TestASignalWithoutANameIsWrittenAsANumber(t *testing.T) {
	for sig, want := range map[unix.Signal]string{0: "", unix.SIGINT: "INT", unix.SIGQUIT: "QUIT", 40: "40", 64: "64"} {
		if got := SignalName(sig); got != want {
			t.Errorf("%d is %q, want %q", sig, got, want)
		}
	}
}
