package sysfile

import (
	"bytes"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// FlockHolder returns the pid of a process whose flock(2) of an open file keeps out a newcomer; 0: none, or unknown.
// The newcomer asks for a shared lock if shared is true, else for an exclusive one. Locks of other pid namespaces
// are not known (proc_locks(5)). The process may have died and left the lock to a child.
func FlockHolder(fd int, shared bool) int {
	const looks = 10
	var st unix.Stat_t
	if err := Fstat(fd, &st); err != nil {
		return 0
	}
	anonymous := isOn(fd, anonymous)
	for range looks {
		text, err := lockTable()
		if err != nil {
			return 0
		}
		holder := flockHolder(text, uint64(st.Dev), uint64(st.Ino), anonymous, shared)
		if holder != 0 || len(text) < os.Getpagesize() {
			return holder
		}
	}
	return 0
}

// lockTable reads /proc/locks, a page at a time: if a lock ends between two reads, a later one may be missed.
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

var anonymous = []int64{unix.BTRFS_SUPER_MAGIC, unix.OVERLAYFS_SUPER_MAGIC} // on these /proc/locks may show a device of major 0, unlike stat(2)

func twoDigits(n uint32) string {
	digits := strconv.FormatUint(uint64(n), 16)
	return "0"[:max(0, 2-len(digits))] + digits
}

func flockHolder(locks []byte, dev, ino uint64, anonymous, shared bool) int {
	inode := []byte(":" + strconv.FormatUint(ino, 10))
	device := []byte(twoDigits(unix.Major(dev)) + ":" + twoDigits(unix.Minor(dev)) + ":")
	holder := 0
	for line := range bytes.Lines(locks) {
		// 1: FLOCK ADVISORY WRITE 4711 fd:01:131099 0 EOF; a waiter has "->" as its second field.
		f := bytes.Fields(line)
		if !keepsOut(f, inode, shared) {
			continue
		}
		pid, err := strconv.Atoi(string(f[4]))
		if err != nil || pid <= 0 {
			continue
		}
		if bytes.HasPrefix(f[5], device) {
			return pid
		}
		if anonymous && bytes.HasPrefix(f[5], []byte("00:")) { // perhaps another file with this inode number
			holder = pid
		}
	}
	return holder
}

func keepsOut(f [][]byte, inode []byte, shared bool) bool {
	return len(f) >= 6 && string(f[1]) == "FLOCK" && bytes.HasSuffix(f[5], inode) && !(shared && string(f[3]) == "READ")
}

// HoldsFlock reports whether a process has the file of st open, and locked with a flock(2) that keeps out a newcomer
// (FlockHolder). Another process may have taken that lock (proc_pid_fdinfo(5)). If /proc hides the descriptors, HoldsFlock
// returns false.
func HoldsFlock(pid int, st *unix.Stat_t, shared bool) bool {
	dir := "/proc/" + strconv.Itoa(pid)
	open, _ := os.ReadDir(dir + "/fdinfo") // nil: none that this process may see
	inode := []byte(":" + strconv.FormatUint(uint64(st.Ino), 10))
	return slices.ContainsFunc(open, func(fd os.DirEntry) bool {
		text, _ := os.ReadFile(dir + "/fdinfo/" + fd.Name()) // nil if the descriptor was closed since
		for line := range bytes.Lines(text) {
			if lock, is := bytes.CutPrefix(line, []byte("lock:")); is && keepsOut(bytes.Fields(lock), inode, shared) {
				var found unix.Stat_t // the device in the line may not be that of stat(2)
				err := unix.Stat(dir+"/fd/"+fd.Name(), &found)
				return err == nil && SameFile(&found, st) || err != nil && err != unix.ENOENT // an unreadable fd may be the file
			}
		}
		return false
	})
}
