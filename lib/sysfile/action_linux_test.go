package sysfile

import (
	"os"
	"os/signal"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/test/support/must"
)

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
	if catches(t, sig) {
		t.Error("the runtime handles it")
	}
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
