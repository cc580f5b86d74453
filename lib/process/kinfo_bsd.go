//go:build freebsd || netbsd || openbsd

package process

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// This file has been compiled but never run. The offsets are those of the C headers on 64-bit machines. A
// record without the requested pid is refused, so a wrong offset causes an error, and not a signal to a stranger.

const bootIDs = false

var here = kept(func() (Identity, error) {
	machine, err := unix.Sysctl(machineID)
	if err != nil {
		machine = "" // without it, no identity proves that its process lives or is dead
	}
	return Identity{Machine: machine}, nil
})

type kinfo struct {
	size                int // of one record; 0: read from its first 4 bytes
	pid, ppid, pgid     int // 4 bytes each
	uid                 int // 4 bytes, effective
	stat                int // 1 byte; 4 is stopped on all three
	sec, usec           int // start time
	secWidth, usecWidth int
	comm, commLen       int
	zombies             string // the values of stat that mean exited
}

func (k kinfo) length(raw []byte) int {
	if k.size == 0 && len(raw) >= 4 {
		return int(binary.NativeEndian.Uint32(raw))
	}
	return k.size
}

// parse reads the record at the start of raw. ok is false if the record is cut short.
func (k kinfo) parse(raw []byte) (e Entry, uid int, ok bool) {
	if n := k.length(raw); n > len(raw) || n < k.sec+k.secWidth || n < k.usec+k.usecWidth || n < k.comm+k.commLen {
		return Entry{}, 0, false
	}
	comm, _, _ := bytes.Cut(raw[k.comm:k.comm+k.commLen], []byte{0})
	return Entry{
		PID:     int(number(raw, k.pid, 4)),
		Parent:  int(number(raw, k.ppid, 4)),
		PGID:    int(number(raw, k.pgid, 4)),
		Start:   number(raw, k.sec, k.secWidth)*1e6 + number(raw, k.usec, k.usecWidth),
		Stopped: raw[k.stat] == 4,
		Exited:  bytes.IndexByte([]byte(k.zombies), raw[k.stat]) >= 0,
		Command: string(comm),
	}, int(number(raw, k.uid, 4)), true
}

func number(raw []byte, at, width int) uint64 {
	if width == 8 {
		return binary.NativeEndian.Uint64(raw[at:])
	}
	return uint64(binary.NativeEndian.Uint32(raw[at:]))
}

func lookUser(pid int) (Entry, int, error) {
	raw, err := processRecord(pid)
	if err == nil {
		if e, uid, ok := layout.parse(raw); ok && e.PID == pid {
			return e, uid, nil
		}
	}
	if unix.Kill(pid, 0) == unix.ESRCH {
		return Entry{}, 0, unix.ESRCH
	}
	if err == nil {
		err = unix.EPERM // hidden, as by security.bsd.see_other_uids
	}
	return Entry{}, 0, err
}

func Table(func(*Entry) bool) ([]Entry, error) {
	raw, err := processRecords()
	if err != nil {
		return nil, err
	}
	var list []Entry
	for len(raw) > 0 {
		e, _, ok := layout.parse(raw)
		if !ok {
			return nil, unix.EBADMSG
		}
		if e.PID > 0 {
			list = append(list, e)
		}
		raw = raw[layout.length(raw):]
	}
	return list, nil
}
