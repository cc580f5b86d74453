package process

import (
	"bytes"
	"encoding/hex"
	"unsafe"

	"golang.org/x/sys/unix"
)

// This file has been compiled but never run.

const monotonic = unix.CLOCK_MONOTONIC

const bootIDs = true

var here = kept(func() (Identity, error) {
	boot, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return Identity{}, err
	}
	return Identity{Boot: boot, Machine: hostUUID()}, nil
})

// hostUUID returns the id of gethostuuid(2), "" if that fails.
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

func lookUser(pid int) (Entry, int, error) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err == nil && int(k.Proc.P_pid) == pid {
		return parse(k), int(k.Eproc.Ucred.Uid), nil
	}
	if unix.Kill(pid, 0) == unix.ESRCH {
		return Entry{}, 0, unix.ESRCH
	}
	if err == nil || err == unix.EIO { // EIO: no such record
		err = unix.EPERM
	}
	return Entry{}, 0, err
}

func parse(k *unix.KinfoProc) Entry {
	command, _, _ := bytes.Cut(k.Proc.P_comm[:], []byte{0})
	return Entry{
		PID:     int(k.Proc.P_pid),
		Parent:  int(k.Eproc.Ppid),
		PGID:    int(k.Eproc.Pgid),
		Start:   uint64(k.Proc.P_starttime.Sec)*1e6 + uint64(k.Proc.P_starttime.Usec),
		Stopped: k.Proc.P_stat == stopped,
		Exited:  k.Proc.P_stat == zombie,
		Command: string(command),
	}
}

func Table(func(*Entry) bool) ([]Entry, error) {
	records, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, err
	}
	list := make([]Entry, 0, len(records))
	for i := range records {
		list = append(list, parse(&records[i]))
	}
	return list, nil
}
