package lockfile

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// GuardHolder returns the pid of the process that holds the lock's guard, as
// /proc/locks has it (proc_locks(5)); 0 where no process does, or where that cannot
// be told: from another pid namespace, or over NFS.
func (a *Active) GuardHolder() int {
	const looks = 3
	for range looks {
		text, err := lockTable()
		if err != nil {
			return 0
		}
		holder := flockHolder(text, a.st.Dev, a.st.Ino)
		if holder != 0 || len(text) < os.Getpagesize() {
			return holder
		}
	}
	return 0
}

// lockTable reads /proc/locks, a page at a time, as the kernel gives no more: where a lock
// goes between two reads those behind it move up, and one is not seen.
func lockTable() ([]byte, error) {
	table, err := os.Open("/proc/locks")
	if err != nil {
		return nil, err
	}
	defer table.Close()
	text := bytes.NewBuffer(make([]byte, 0, 1<<16)) // else it would be asked for 512 bytes at a time
	_, err = text.ReadFrom(table)
	return text.Bytes(), err
}

// flockHolder finds in the lines of /proc/locks the holder of the flock of an inode.
func flockHolder(locks []byte, dev, ino uint64) int {
	inode := []byte(":" + strconv.FormatUint(ino, 10))
	device := []byte(fileID(dev))
	holder := 0
	for line := range bytes.Lines(locks) {
		// 1: FLOCK ADVISORY WRITE 4711 fd:01:131099 0 EOF; a waiter has "->" second.
		f := bytes.Fields(line)
		if len(f) < 6 || string(f[1]) != "FLOCK" || !bytes.HasSuffix(f[5], inode) {
			continue
		}
		pid, err := strconv.Atoi(string(f[4]))
		if err != nil || pid <= 0 {
			continue
		}
		if bytes.HasPrefix(f[5], device) {
			return pid
		}
		holder = pid // btrfs and overlayfs show another device there than stat(2) does
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
