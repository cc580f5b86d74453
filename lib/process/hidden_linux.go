package process

import (
	"bytes"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// hidden returns an entry for a process that /proc hides (hidepid, proc(5)), from getpgid(2), getsid(2) and its
// pidfd, which any user may read. hidden returns false if no process has that pid or, with pidfds, for a thread's id.
func hidden(pid int) (Entry, bool) {
	fd, err := unix.PidfdOpen(pid, 0)
	switch {
	case err == nil:
		defer unix.Close(fd)
		return hiddenEntry(pid, fd), true
	case err == unix.EINVAL, err == unix.ENOENT, unix.Kill(pid, 0) == unix.ESRCH:
		return Entry{}, false // pid is a thread's id: EINVAL, or ENOENT since Linux 6.15
	}
	return hiddenEntry(pid, noPidfd), true
}

// hiddenEntry describes a hidden process. Without a pidfd (fd < 0) the process's inode, parent and exit are unknown.
func hiddenEntry(pid, fd int) Entry {
	e := Entry{PID: pid, Hidden: true, Start: hiddenStart | inodeOfPidfd(fd), Exited: pidfdExited(fd), Parent: parentByPidfd(fd)}
	e.PGID, _ = unix.Getpgid(pid)
	e.SID, _ = unix.Getsid(pid)
	return e
}

// parentByPidfd returns the parent's pid; 0: unknown, as before Linux 6.13 or without a pidfd.
func parentByPidfd(fd int) int {
	info := unix.PidfdInfo{Mask: unix.PIDFD_INFO_PID}
	if unix.IoctlPidfdInfo(fd, &info) != nil {
		return 0
	}
	return int(info.Ppid)
}

// hiddenChildren adds to list those children of the listed processes that /proc hides: the kernel lists children of
// any user (CONFIG_PROC_CHILDREN). hiddenChildren adds no grandchildren: one child shows that the job lives.
func hiddenChildren(list []Entry) []Entry {
	if !hidesProcesses() {
		return list
	}
	shown := make(map[int]bool, len(list))
	for _, e := range list {
		shown[e.PID] = true
	}
	for _, e := range list {
		for _, pid := range Children(e.PID) {
			if shown[pid] {
				continue
			}
			if child, there := hidden(pid); there && unshown(pid) {
				child.Parent = e.PID
				list = append(list, child)
			}
		}
	}
	return list
}

// unshown reports whether /proc hides the process. A process may also be missing from a table that is older.
func unshown(pid int) bool {
	_, err := look(pid)
	return err == unix.EPERM
}

// hidesProcesses reports whether the mount options of /proc may hide processes, or cannot be read.
var hidesProcesses = sync.OnceValue(func() bool { return mayHide("/proc/self/mounts") })

func mayHide(mounts string) (hides bool) {
	text, err := os.ReadFile(mounts)
	if err != nil {
		return true
	}
	for _, line := range bytes.Split(text, []byte{'\n'}) {
		if f := bytes.Fields(line); len(f) > 3 && string(f[1]) == "/proc" {
			hides = bytes.Contains(f[3], []byte("hidepid")) // the last mount covers the earlier ones
		}
	}
	return hides
}
