package process

import (
	"bytes"
	"time"
)

// tick is the unit of Identity.Start: USER_HZ is 100 on every system that Go runs on.
const tick = time.Second / 100

// Still tells whether a process stands still, stopped by a signal or held by a
// debugger, and how long ago it was started.
func Still(pid int) (still bool, age time.Duration) {
	var buf [1024]byte
	text, err := read(path(pid, "stat"), buf[:])
	if err != nil {
		return false, 0
	}
	e, err := parseStat(text)
	if err != nil {
		return false, 0
	}
	state := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])[0][0]
	return state == 'T' || state == 't', Boottime() - time.Duration(e.start)*tick
}
