package process

import "golang.org/x/sys/unix"

const monotonic = 3 // CLOCK_MONOTONIC of sys/time.h, which x/sys lacks

const machineID = "machdep.dmi.system-uuid"

// layout is struct kinfo_proc2 of sys/sysctl.h.
var layout = kinfo{
	size: 472,
	pid:  116, ppid: 120, pgid: 128, uid: 136,
	stat: 360, comm: 368, commLen: 24,
	sec: 456, secWidth: 4, usec: 460, usecWidth: 4,
	zombies: "\x05\x06",
}

const (
	procAll = 0 // KERN_PROC_ALL
	procPID = 1 // KERN_PROC_PID
	room    = 1 << 14
)

func processRecord(pid int) ([]byte, error) {
	return unix.SysctlRaw("kern.proc2", procPID, pid, layout.size, 1)
}

func processRecords() ([]byte, error) {
	return unix.SysctlRaw("kern.proc2", procAll, 0, layout.size, room)
}
