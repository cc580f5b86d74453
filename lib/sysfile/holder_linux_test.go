package sysfile

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestFlockHolderIsFoundInProcLocks(t *testing.T) {
	dev := unix.Mkdev(0xfd, 1)
	const waits, posix, pidless = "1: -> FLOCK ADVISORY WRITE 17 fd:01:99 0 EOF\n", "2: POSIX ADVISORY WRITE 18 fd:01:99 0 EOF\n", "3: FLOCK ADVISORY WRITE 0 fd:01:99 0 EOF\n"
	const mine, others, inode, elsewhere = "4: FLOCK ADVISORY WRITE 1 fd:01:99 0 EOF\n", "5: FLOCK ADVISORY WRITE 20 fd:01:199 0 EOF\n", "6: FLOCK ADVISORY WRITE 21 fd:01:9 0 EOF\n", "7: FLOCK ADVISORY WRITE 22 00:2b:99 0 EOF\n"
	for _, c := range []struct {
		locks string
		want  int
	}{
		{"", 0}, {"\n8:\n", 0}, {waits + posix + pidless + others + inode, 0}, {pidless, 0}, {"9: FLOCK ADVISORY WRITE x fd:01:99 0 EOF\n", 0},
		{mine, 1}, {waits + posix + pidless + others + mine, 1}, {mine + elsewhere, 1}, {elsewhere + mine, 1},
		{elsewhere, 22}, {elsewhere + pidless, 22}, // the file systems that show another device
	} {
		if got := flockHolder([]byte(c.locks), dev, 99, false); got != c.want {
			t.Errorf("%q: %d, want %d", c.locks, got, c.want)
		}
		if got := flockHolder([]byte(strings.ReplaceAll(c.locks, "WRITE", "READ")), dev, 99, true); got != 0 {
			t.Errorf("%q: a shared flock keeps out a shared one: %d", c.locks, got)
		}
	}
}

func TestFlockHolderMatchesTheDeviceNumbersOfProcLocks(t *testing.T) {
	for want, dev := range map[string]uint64{"00:05:": unix.Mkdev(0, 5), "fd:10:": unix.Mkdev(0xfd, 0x10), "08:0f:": unix.Mkdev(8, 15), "103:00:": unix.Mkdev(0x103, 0)} {
		locks := "1: FLOCK ADVISORY WRITE 7 " + want + "99 0 EOF\n2: FLOCK ADVISORY WRITE 8 00:2b:99 0 EOF\n"
		if got := flockHolder([]byte(locks), dev, 99, false); got != 7 {
			t.Errorf("%d is not %q: %d", dev, want, got)
		}
	}
}
