package process

import "golang.org/x/sys/unix"

const monotonic = unix.CLOCK_MONOTONIC

const machineID = "kern.hostuuid"

// layout is struct kinfo_proc of sys/user.h, which is fixed except at its end.
var layout = kinfo{
	pid: 72, ppid: 76, pgid: 80, uid: 168,
	sec: 336, secWidth: 8, usec: 344, usecWidth: 8,
	stat: 388, comm: 447, commLen: 20,
	zombies: "\x05",
}

func processRecord(pid int) ([]byte, error) { return unix.SysctlRaw("kern.proc.pid", pid) }

// kern.proc.proc has one record per process; kern.proc.all has one per thread.
func processRecords() ([]byte, error) { return unix.SysctlRaw("kern.proc.proc") }
