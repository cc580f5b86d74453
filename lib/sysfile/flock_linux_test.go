package sysfile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/test/support/helper"
	"adlock/test/support/must"
)

// twice opens one file two times: flock(2) treats these as two owners.
func twice(t *testing.T) (one, other int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(path, nil, 0o600))
	return opened(t, path), opened(t, path)
}

func opened(t *testing.T, path string) int {
	t.Helper()
	fd := must.Get(Open(path, unix.O_RDWR))(t)
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func TestFlockGivesUpAtItsDeadline(t *testing.T) {
	one, other := twice(t)
	must.Do(t, Flock(one, unix.LOCK_EX, 0))
	for _, wait := range []time.Duration{0, 50 * time.Millisecond} {
		began := time.Now()
		err := Flock(other, unix.LOCK_EX, wait)
		took := time.Since(began)
		if !errors.Is(err, unix.EWOULDBLOCK) || took < wait || took > wait+soon {
			t.Errorf("%v after %v, want EWOULDBLOCK after %v", err, took, wait)
		}
	}
}

func TestFlockWaitsUntilTheOtherOwnerUnlocks(t *testing.T) {
	one, other := twice(t)
	must.Do(t, Flock(one, unix.LOCK_EX, 0))
	done := make(chan error, 1)
	go func() { done <- Flock(other, unix.LOCK_EX, time.Hour) }()
	helper.Eventually(t, "the second one waits", func() bool { return waits("time.Sleep", "sysfile.Flock") })
	must.Do(t, Unlock(one))
	must.Do(t, within(t, done))
	if err := Flock(one, unix.LOCK_EX, 0); !errors.Is(err, unix.EWOULDBLOCK) {
		t.Errorf("%v, and the second one has it", err)
	}
}

func TestFlockOfABadDescriptorFailsAtOnce(t *testing.T) {
	began := time.Now()
	if err := Flock(-1, unix.LOCK_EX, time.Hour); !errors.Is(err, unix.EBADF) {
		t.Error(err)
	}
	if err := Unlock(-1); !errors.Is(err, unix.EBADF) {
		t.Error(err)
	}
	if took := time.Since(began); took > soon {
		t.Errorf("took %v", took)
	}
}
