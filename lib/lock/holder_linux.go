package lock

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// GuardHolder returns the pid of the process that holds the lock's guard, as
// /proc/locks has it (proc_locks(5)); 0 where nobody does, or where that cannot
// be told: from another pid namespace, or over NFS.
func (a *Active) GuardHolder() int {
	text, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0
	}
	inode := []byte(":" + strconv.FormatUint(a.st.Ino, 10))
	device := []byte(fileID(a.st.Dev))
	holder := 0
	for line := range bytes.Lines(text) {
		// 1: FLOCK ADVISORY WRITE 4711 fd:01:131099 0 EOF; who waits has "->" second.
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
