package sysfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adlock/test/support/check"
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

func TestFlockHolderIsFoundInProcLocks(t *testing.T) {
	dev := unix.Mkdev(0xfd, 1)
	const waits, posix, pidless = "1: -> FLOCK ADVISORY WRITE 17 fd:01:99 0 EOF\n", "2: POSIX ADVISORY WRITE 18 fd:01:99 0 EOF\n", "3: FLOCK ADVISORY WRITE 0 fd:01:99 0 EOF\n"
	const mine, others, inode, elsewhere = "4: FLOCK ADVISORY WRITE 1 fd:01:99 0 EOF\n", "5: FLOCK ADVISORY WRITE 20 fd:01:199 0 EOF\n", "6: FLOCK ADVISORY WRITE 21 fd:01:9 0 EOF\n", "7: FLOCK ADVISORY WRITE 22 00:2b:99 0 EOF\n"
	const stranger = "8: FLOCK ADVISORY WRITE 23 fd:02:99 0 EOF\n"
	for _, c := range []struct {
		locks     string
		want      int
		anonymous bool
	}{
		{"", 0, true}, {"\n8:\n", 0, true}, {waits + posix + pidless + others + inode, 0, true}, {pidless, 0, true}, {"9: FLOCK ADVISORY WRITE x fd:01:99 0 EOF\n", 0, true},
		{mine, 1, false}, {waits + posix + pidless + others + mine, 1, true}, {mine + elsewhere, 1, true}, {elsewhere + mine, 1, true},
		{elsewhere, 22, true}, {elsewhere + pidless + stranger, 22, true}, {stranger, 0, true}, {elsewhere + stranger, 0, false},
	} {
		check.Equal(t, c.locks, flockHolder([]byte(c.locks), dev, 99, c.anonymous, false), c.want)
		check.Equal(t, "shared: "+c.locks, flockHolder([]byte(strings.ReplaceAll(c.locks, "WRITE", "READ")), dev, 99, c.anonymous, true), 0)
	}
}

func TestFlockHolderMatchesTheDeviceNumbersOfProcLocks(t *testing.T) {
	for want, dev := range map[string]uint64{"00:05:": unix.Mkdev(0, 5), "fd:10:": unix.Mkdev(0xfd, 0x10), "08:0f:": unix.Mkdev(8, 15), "103:00:": unix.Mkdev(0x103, 0)} {
		locks := "1: FLOCK ADVISORY WRITE 7 " + want + "99 0 EOF\n2: FLOCK ADVISORY WRITE 8 00:2b:99 0 EOF\n"
		check.Equal(t, want, flockHolder([]byte(locks), dev, 99, true, false), 7)
	}
}

func TestHoldsFlockComparesTheDeviceOfTheFile(t *testing.T) {
	one, other := twice(t)
	must.Do(t, Flock(one, unix.LOCK_EX, 0))
	var st unix.Stat_t
	must.Do(t, Fstat(other, &st))
	holds := func() bool { return HoldsFlock(unix.Getpid(), &st, false) }
	mine := holds()
	if st.Dev++; !mine || holds() {
		t.Errorf("the file's lock: %v; and with another device: %v", mine, holds())
	}
}
