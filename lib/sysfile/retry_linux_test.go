package sysfile

import (
	"os"
	"os/signal"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"adlock/test/support/helper"
	"adlock/test/support/must"
)

func TestACallThatASignalInterruptsIsRepeated(t *testing.T) {
	for _, want := range []error{nil, unix.EIO} {
		calls := 0
		call := func() (int, error) {
			if calls++; calls%3 != 0 {
				return -1, unix.EINTR
			}
			return calls, want
		}
		if err := Retry(func() error { _, err := call(); return err }); err != want || calls != 3 {
			t.Errorf("%v after %d calls", err, calls)
		}
		if n, err := RetryN(call); err != want || n != 6 {
			t.Errorf("%d, %v after %d calls", n, err, calls)
		}
	}
}

func TestWaitOutlastsSignals(t *testing.T) {
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, unix.SIGUSR1)
	defer signal.Stop(caught)
	child := start(t, "read word; exit 7")
	thread, done := make(chan int, 1), make(chan int, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		thread <- unix.Gettid()
		status, err := Wait(child.Process.Pid)
		if err != nil {
			t.Error(err)
		}
		done <- status.ExitStatus()
	}()
	id, sent := within(t, thread), 0
	helper.Eventually(t, "interrupted often enough, or over", func() bool {
		must.Do(t, unix.Tgkill(unix.Getpid(), id, unix.SIGUSR1))
		sent++
		return sent > 20 || len(done) > 0
	})
	child.free()
	if status := within(t, done); status != 7 {
		t.Errorf("status %d", status)
	}
}
