package sysfile

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/test/support/helper"
	"adlock/test/support/must"
)

// interrupted starts the call on a thread of its own, and sends that thread
// signals until enough is true. Then it calls free, so that the call can end, and
// returns the call's error.
func interrupted(t *testing.T, call func() error, enough func() bool, free func()) error {
	t.Helper()
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, unix.SIGUSR1)
	defer signal.Stop(caught)
	thread, done := make(chan int, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		thread <- unix.Gettid()
		done <- call()
	}()
	id := within(t, thread)
	helper.Eventually(t, "interrupted often enough, or over", func() bool {
		must.Do(t, unix.Tgkill(unix.Getpid(), id, unix.SIGUSR1))
		return enough() || len(done) > 0
	})
	free()
	return within(t, done)
}

// impatient returns a socket pair; the reads of the first socket have a timeout,
// so a signal interrupts them for good (signal(7)).
func impatient(t *testing.T) (ours, theirs int) {
	t.Helper()
	ours, theirs, err := SocketPair()
	must.Do(t, err)
	t.Cleanup(func() { unix.Close(ours); unix.Close(theirs) })
	timeout := unix.NsecToTimeval(int64(soon))
	must.Do(t, unix.SetsockoptTimeval(ours, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout))
	return ours, theirs
}

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
	child := start(t, "read word; exit 7")
	var status syscall.WaitStatus
	sent := 0
	err := interrupted(t, func() (err error) {
		status, err = Wait(child.Process.Pid)
		return err
	}, func() bool { sent++; return sent > 20 }, child.free)
	if err != nil || status.ExitStatus() != 7 {
		t.Errorf("%v, status %v", err, status)
	}
}

func say(t *testing.T, fd int, text string) {
	t.Helper()
	if n, err := Write(fd, []byte(text)); err != nil || n != len(text) {
		t.Fatalf("%d bytes written: %v", n, err)
	}
}

func TestAWriteThatFindsNoRoomWaitsThroughSignals(t *testing.T) {
	ours, theirs := impatient(t)
	timeout := unix.NsecToTimeval(int64(soon))
	must.Do(t, unix.SetsockoptTimeval(theirs, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &timeout))
	block := make([]byte, 4096)
	full := func() bool {
		_, err := unix.SendmsgN(theirs, block, nil, nil, unix.MSG_DONTWAIT)
		return errors.Is(err, unix.EAGAIN)
	}
	helper.Eventually(t, "the socket is full", full)
	n, sent := 0, 0
	err := interrupted(t, func() (err error) {
		n, err = Write(theirs, block)
		return err
	}, func() bool { sent++; return sent > 20 }, func() { drain(t, ours) })
	if err != nil || n != len(block) {
		t.Errorf("%v, %d bytes written", err, n)
	}
}

// drain reads until nothing has come for a moment.
func drain(t *testing.T, fd int) {
	t.Helper()
	block := make([]byte, 1<<16)
	for {
		ready, err := RetryN(func() (int, error) {
			return unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int((100 * time.Millisecond).Milliseconds()))
		})
		must.Do(t, err)
		if ready == 0 {
			return
		}
		_, err = Read(fd, block)
		must.Do(t, err)
	}
}
