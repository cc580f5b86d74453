package record

import (
	"bytes"
	"strconv"
	"strings"

	"adlock/lib/process"
)

// Appended is what was added to an active lock after it was made. Each line is written by one write; readers
// ignore an unfinished last one, which a write that failed may leave. The file is not replaced: a new file
// would look like a takeover.
type Appended struct {
	Command   process.Identity   // the command that `adlock run` has started; PID 0: none yet
	Survivors []process.Identity // members of a job whose ending has begun
	Uncounted bool               // there were more survivors than the lock had room for
}

// Longest is the largest size in bytes of a lock, appended lines included.
const Longest = 64 << 10

const (
	commandKey     = "command"
	survivorPrefix = "survivor."
)

// ManySurvivors is the line that stands for survivors for which the lock has no room.
const ManySurvivors = "survivor=many\n"

// CommandLine returns the line for the command that `adlock run` has started.
func CommandLine(id process.Identity) string { return processLine(commandKey, id) }

// SurvivorLine returns the line for the n-th member (from 1) of a job whose ending has begun.
func SurvivorLine(n int, id process.Identity) string {
	return processLine(survivorPrefix+strconv.Itoa(n), id)
}

// processLine includes the namespaces of id, as the process that appends the line need not share the owner's.
func processLine(key string, id process.Identity) string {
	line := []byte(key + "=" + strconv.Itoa(id.PID))
	for _, n := range []uint64{id.Start, id.Inode, uint64(id.SID), id.PIDNS, id.TimeNS} {
		line = strconv.AppendUint(append(line, ' '), n, 10)
	}
	return string(line) + "\n"
}

// parseAppended reads appended lines, except an unfinished last one. ok is false if a line is unknown or bad, which
// makes the lock Damaged. The processes get the owner's machine and boot.
func parseAppended(tail []byte, owner process.Identity) (a Appended, ok bool) {
	tail = tail[:bytes.LastIndexByte(tail, '\n')+1]
	for line := range strings.Lines(string(tail)) {
		if line == ManySurvivors {
			a.Uncounted = true
			continue
		}
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		id, ok := parseProcess(value, owner)
		switch {
		case !ok:
			return Appended{}, false
		case key == commandKey:
			a.Command = id
		case strings.HasPrefix(key, survivorPrefix):
			a.Survivors = append(a.Survivors, id)
		default:
			return Appended{}, false
		}
	}
	return a, true
}

func parseProcess(text string, owner process.Identity) (process.Identity, bool) {
	fields := strings.Split(text, " ")
	var n [6]uint64
	if len(fields) != len(n) {
		return process.Identity{}, false
	}
	for i, field := range fields {
		var err error
		if n[i], err = strconv.ParseUint(field, 10, 64); err != nil {
			return process.Identity{}, false
		}
	}
	if n[0] == 0 || n[0] > 1<<30 {
		return process.Identity{}, false
	}
	return process.Identity{
		PID: int(n[0]), Start: n[1], Inode: n[2], SID: int(n[3]), PIDNS: n[4], TimeNS: n[5],
		Boot: owner.Boot, Machine: owner.Machine,
	}, true
}
