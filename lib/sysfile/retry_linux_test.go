package sysfile

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"sync/atomic"
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

func TestASignalDuringACallIsFollowedByAnotherCall(t *testing.T) {
	ours, theirs := impatient(t)
	var calls atomic.Int32
	var got [1]byte
	err := interrupted(t, func() error {
		return Retry(func() error {
			calls.Add(1)
			_, err := unix.Read(ours, got[:])
			return err
		})
	}, func() bool { return calls.Load() > 2 }, func() { say(t, theirs, "x") })
	if err != nil || got[0] != 'x' {
		t.Errorf("%v, read %q", err, got)
	}
}

func TestACountComesFromTheCallThatWasNotCutShort(t *testing.T) {
	ours, theirs := impatient(t)
	var calls atomic.Int32
	var got [8]byte
	n := 0
	err := interrupted(t, func() (err error) {
		n, err = RetryN(func() (int, error) {
			calls.Add(1)
			return unix.Read(ours, got[:])
		})
		return err
	}, func() bool { return calls.Load() > 2 }, func() { say(t, theirs, "word") })
	if err != nil || string(got[:max(n, 0)]) != "word" {
		t.Errorf("%v, read %d: %q", err, n, got)
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

func TestAnErrorOtherThanASignalEndsIt(t *testing.T) {
	calls := 0
	fail := func() error { calls++; return unix.EIO }
	if err := Retry(fail); !errors.Is(err, unix.EIO) || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
	n, err := RetryN(func() (int, error) { return -1, fail() })
	if !errors.Is(err, unix.EIO) || n != -1 || calls != 2 {
		t.Errorf("%d, %v after %d calls", n, err, calls)
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
