package process

import "golang.org/x/sys/unix"

const monotonic = unix.CLOCK_MONOTONIC

const machineID = "hw.uuid"

// layout is struct kinfo_proc of sys/sysctl.h.
var layout = kinfo{
	size: 0x268,
	pid:  108, ppid: 112, pgid: 120, uid: 128,
	stat: 304, comm: 312, commLen: 24,
	sec: 408, secWidth: 8, usec: 416, usecWidth: 4,
	zombies: "\x05\x06",
}

const (
	procAll = 0 // KERN_PROC_ALL
	procPID = 1 // KERN_PROC_PID
	room    = 1 << 14
)

func processRecord(pid int) ([]byte, error) {
	return unix.SysctlRaw("kern.proc", procPID, pid, layout.size, 1)
}

func processRecords() ([]byte, error) {
	return unix.SysctlRaw("kern.proc", procAll, 0, layout.size, room)
}
