package sysfile

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// FlockHolder returns the pid of a process that took a flock(2) of an inode which keeps a newcomer out,
// one that wants it exclusive or shared. It is from /proc/locks (proc_locks(5)), which hides
// those in other pid namespaces; 0: none, or unknown. Other processes may hold the same flock, and
// that one may be dead.
func FlockHolder(dev, ino uint64, shared bool) int {
	const looks = 3
	for range looks {
		text, err := lockTable()
		if err != nil {
			return 0
		}
		holder := flockHolder(text, dev, ino, shared)
		if holder != 0 || len(text) < os.Getpagesize() {
			return holder
		}
	}
	return 0
}

// lockTable reads /proc/locks, a page at a time, as the kernel gives no more. If a lock goes
// between two reads, the lines behind it move up and one is missed.
func lockTable() ([]byte, error) {
	table, err := os.Open("/proc/locks")
	if err != nil {
		return nil, err
	}
	defer table.Close()
	text := bytes.NewBuffer(make([]byte, 0, 1<<16)) // otherwise each read would ask for 512 bytes
	_, err = text.ReadFrom(table)
	return text.Bytes(), err
}

// flockHolder finds the pid in the lines of /proc/locks.
func flockHolder(locks []byte, dev, ino uint64, shared bool) int {
	inode := []byte(":" + strconv.FormatUint(ino, 10))
	device := []byte(fileID(dev))
	holder := 0
	for line := range bytes.Lines(locks) {
		// 1: FLOCK ADVISORY WRITE 4711 fd:01:131099 0 EOF; a waiter has "->" as its second field.
		f := bytes.Fields(line)
		if len(f) < 6 || string(f[1]) != "FLOCK" || !bytes.HasSuffix(f[5], inode) {
			continue
		}
		if shared && string(f[3]) == "READ" {
			continue
		}
		pid, err := strconv.Atoi(string(f[4]))
		if err != nil || pid <= 0 {
			continue
		}
		if bytes.HasPrefix(f[5], device) {
			return pid
		}
		holder = pid // btrfs and overlayfs show another device here than stat(2)
	}
	return holder
}

func fileID(dev uint64) string {
	two := func(n uint32) string {
		text := strconv.FormatUint(uint64(n), 16)
		if len(text) < 2 {
			text = "0" + text
		}
		return text
	}
	return two(unix.Major(dev)) + ":" + two(unix.Minor(dev)) + ":"
}
