package process

import (
	"bytes"
	"encoding/hex"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// None of this was run: only compiled.

const monotonic = unix.CLOCK_MONOTONIC

const bootIDs = true

var here = sync.OnceValues(func() (Identity, error) {
	boot, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return Identity{}, err
	}
	return Identity{Boot: boot, Machine: hostUUID()}, nil
})

// hostUUID is gethostuuid(2), "" where it fails.
func hostUUID() string {
	var id [16]byte
	var wait unix.Timespec
	_, _, errno := unix.Syscall(sysGethostuuid, uintptr(unsafe.Pointer(&id)), uintptr(unsafe.Pointer(&wait)), 0)
	if errno != 0 {
		return ""
	}
	return hex.EncodeToString(id[:])
}

const (
	sysGethostuuid = 142 // SYS_gethostuuid, sys/syscall.h

	stopped = 4 // SSTOP, sys/proc.h
	zombie  = 5 // SZOMB
)

func lookUser(pid int) (entry, int, error) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err == nil && int(k.Proc.P_pid) == pid {
		return parse(k), int(k.Eproc.Ucred.Uid), nil
	}
	if unix.Kill(pid, 0) == unix.ESRCH {
		return entry{}, 0, unix.ESRCH
	}
	if err == nil || err == unix.EIO { // EIO: no such record
		err = unix.EPERM
	}
	return entry{}, 0, err
}

func parse(k *unix.KinfoProc) entry {
	command, _, _ := bytes.Cut(k.Proc.P_comm[:], []byte{0})
	return entry{
		pid:     int(k.Proc.P_pid),
		ppid:    int(k.Eproc.Ppid),
		pgid:    int(k.Eproc.Pgid),
		start:   uint64(k.Proc.P_starttime.Sec)*1e6 + uint64(k.Proc.P_starttime.Usec),
		stopped: k.Proc.P_stat == stopped,
		dead:    k.Proc.P_stat == zombie,
		command: string(command),
	}
}

func table() ([]entry, error) {
	records, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, err
	}
	list := make([]entry, 0, len(records))
	for i := range records {
		list = append(list, parse(&records[i]))
	}
	return list, nil
}
