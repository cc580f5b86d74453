//go:build freebsd || netbsd || openbsd

package process

import (
	"bytes"
	"encoding/binary"
	"sync"

	"golang.org/x/sys/unix"
)

// None of this was run: only compiled. The offsets are those of the C headers
// on 64-bit machines; a record that does not carry the pid asked for is
// refused, so that a wrong offset ends in an error and not in a signal.

const bootIDs = false

var here = sync.OnceValues(func() (Identity, error) {
	machine, err := unix.Sysctl(machineID)
	if err != nil {
		machine = "" // then nothing is ever proven dead from another process's record
	}
	return Identity{Machine: machine}, nil
})

// kinfo says where a process record has what.
type kinfo struct {
	size                int // of one record; 0: its first 4 bytes tell
	pid, ppid, pgid     int // 4 bytes each
	uid                 int // 4 bytes, effective
	stat                int // 1 byte; 4 is stopped on all three
	sec, usec           int // start time
	secWidth, usecWidth int
	comm, commLen       int
	zombies             string // values of stat
}

func (k kinfo) length(raw []byte) int {
	if k.size == 0 && len(raw) >= 4 {
		return int(binary.NativeEndian.Uint32(raw))
	}
	return k.size
}

// parse reads the record at the start of raw. It is false for one cut short.
func (k kinfo) parse(raw []byte) (e entry, uid int, ok bool) {
	if n := k.length(raw); n > len(raw) || n < k.sec+k.secWidth || n < k.usec+k.usecWidth || n < k.comm+k.commLen {
		return entry{}, 0, false
	}
	comm, _, _ := bytes.Cut(raw[k.comm:k.comm+k.commLen], []byte{0})
	return entry{
		pid:     int(number(raw, k.pid, 4)),
		ppid:    int(number(raw, k.ppid, 4)),
		pgid:    int(number(raw, k.pgid, 4)),
		start:   number(raw, k.sec, k.secWidth)*1e6 + number(raw, k.usec, k.usecWidth),
		stopped: raw[k.stat] == 4,
		dead:    bytes.IndexByte([]byte(k.zombies), raw[k.stat]) >= 0,
		command: string(comm),
	}, int(number(raw, k.uid, 4)), true
}

func number(raw []byte, at, width int) uint64 {
	if width == 8 {
		return binary.NativeEndian.Uint64(raw[at:])
	}
	return uint64(binary.NativeEndian.Uint32(raw[at:]))
}

func lookUser(pid int) (entry, int, error) {
	raw, err := processRecord(pid)
	if err == nil {
		if e, uid, ok := layout.parse(raw); ok && e.pid == pid {
			return e, uid, nil
		}
	}
	if unix.Kill(pid, 0) == unix.ESRCH {
		return entry{}, 0, unix.ESRCH
	}
	if err == nil {
		err = unix.EPERM // security.bsd.see_other_uids and the like hide it
	}
	return entry{}, 0, err
}

func table() ([]entry, error) {
	raw, err := processRecords()
	if err != nil {
		return nil, err
	}
	var list []entry
	for len(raw) > 0 {
		e, _, ok := layout.parse(raw)
		if !ok {
			return nil, unix.EBADMSG
		}
		if e.pid > 0 {
			list = append(list, e)
		}
		raw = raw[layout.length(raw):]
	}
	return list, nil
}
