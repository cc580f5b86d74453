package process

import (
	"bytes"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// hiddenStart stands for the start of a process that /proc does not show: it is beyond any clock,
// and with the inode of the pidfd it still names one process.
const hiddenStart = 1 << 63

// hidden returns what getpgid(2), getsid(2) and pidfds, which do not check the caller, tell of a process
// that /proc hides (hidepid, proc(5)); false if no process has that pid, and for the id of a thread.
func hidden(pid int) (Entry, bool) {
	fd, err := unix.PidfdOpen(pid, 0)
	switch {
	case err == nil:
		defer unix.Close(fd)
		return hiddenEntry(pid, fd), true
	case err == unix.EINVAL, err == unix.ENOENT, unix.Kill(pid, 0) == unix.ESRCH:
		return Entry{}, false // EINVAL, since Linux 6.15 ENOENT: pid is a thread's id
	}
	return hiddenEntry(pid, noPidfd), true
}

// hiddenEntry is of a hidden process; without a pidfd (fd < 0) inode, parent and exit are unknown.
func hiddenEntry(pid, fd int) Entry {
	e := Entry{PID: pid, Hidden: true, Start: hiddenStart | inodeOfPidfd(fd), Exited: pidfdExited(fd), Parent: parentByPidfd(fd)}
	e.PGID, _ = unix.Getpgid(pid)
	e.SID, _ = unix.Getsid(pid)
	return e
}

// parentByPidfd returns 0 before Linux 6.13, and without a pidfd.
func parentByPidfd(fd int) int {
	info := unix.PidfdInfo{Mask: unix.PIDFD_INFO_PID}
	if unix.IoctlPidfdInfo(fd, &info) != nil {
		return 0
	}
	return int(info.Ppid)
}

// hiddenChildren adds the children of listed processes that /proc hides: the kernel lists children of any
// user (CONFIG_PROC_CHILDREN). It finds none of a hidden process, which itself shows that its job lives.
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

// unshown tells whether /proc hides the process: one that the table lacks may have started later.
func unshown(pid int) bool {
	_, err := look(pid)
	return err == unix.EPERM
}

// hidesProcesses tells whether the mount options of /proc may hide processes.
var hidesProcesses = sync.OnceValue(func() bool { return mayHide("/proc/self/mounts") })

func mayHide(mounts string) (hides bool) {
	text, err := os.ReadFile(mounts)
	if err != nil {
		return true
	}
	for _, line := range bytes.Split(text, []byte{'\n'}) {
		if f := bytes.Fields(line); len(f) > 3 && string(f[1]) == "/proc" {
			hides = bytes.Contains(f[3], []byte("hidepid")) // the last mount is on top
		}
	}
	return hides
}
