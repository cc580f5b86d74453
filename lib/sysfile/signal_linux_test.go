package sysfile

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/test/support/check"
	"adlock/test/support/must"
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
		check.Equal(t, fmt.Sprint(int(sig)), SignalName(sig), want)
	}
}

// catches reports whether this process handles the signal.
func catches(t *testing.T, sig unix.Signal) bool {
	t.Helper()
	_, mask, _ := strings.Cut(string(must.Get(os.ReadFile("/proc/self/status"))(t)), "SigCgt:\t")
	mask, _, _ = strings.Cut(mask, "\n")
	return must.Get(strconv.ParseUint(mask, 16, 64))(t)>>(sig-1)&1 != 0
}

func TestLeaveToKernelRemovesTheHandlerUntilItIsGivenBack(t *testing.T) {
	const sig = unix.SIGUSR2
	giveBack := LeaveToKernel([]os.Signal{sig})
	check.Equal(t, "the runtime handles it", catches(t, sig), false)
	got := make(chan os.Signal, 1)
	signal.Notify(got, sig)
	defer signal.Stop(got)
	giveBack()
	if !catches(t, sig) {
		t.Fatal("the runtime does not handle it again")
	}
	must.Do(t, unix.Kill(os.Getpid(), sig))
	within(t, got)
}
