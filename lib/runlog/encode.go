package runlog

import (
	"math"
	"strconv"
	"time"
)

// timeLayout has a fixed width, so that lines sort by it.
const timeLayout = "2006-01-02T15:04:05.000000Z"

// MaxLine is the longest line, in bytes with its newline. It is far above what a
// command line needs, and keeps one record from filling the file and its reader's
// memory.
const MaxLine = 1 << 20

// appendLine appends e as one line with its newline. fileHost is the HOST of
// the file that the line is for.
func appendLine(b []byte, e *Event, fileHost string) []byte {
	b = append(b, "time="...)
	b = e.Time.UTC().AppendFormat(b, timeLayout)
	b = appendText(b, "event", string(e.Kind))
	b = appendText(b, "program", e.Program)
	if e.Host != fileHost {
		b = appendText(b, "host", e.Host)
	}
	b = appendText(b, "operator", e.Operator)
	b = appendText(b, "operand", e.Operand)
	b = appendOptInt(b, "slot", e.Slot)
	b = appendInt(b, "pid", e.PID)
	b = appendText(b, "token", e.Token)
	b = appendInt(b, "owner", e.Owner)
	b = appendText(b, "owner_token", e.OwnerToken)
	b = appendText(b, "verdict", e.Verdict)
	b = appendOptDuration(b, "if_elapsed", e.IfElapsed)
	b = appendOptDuration(b, "expire_after", e.ExpireAfter)
	b = appendOptDuration(b, "age", e.Age)
	b = appendOptDuration(b, "wait", Opt[time.Duration]{e.Wait, e.Wait != 0})
	b = appendOptDuration(b, "duration", e.Duration)
	b = appendOptInt(b, "status", e.Status)
	b = appendText(b, "signal", e.Signal)
	b = appendInt(b, "target", e.Target)
	b = appendInt(b, "count", e.Count)
	b = appendText(b, "reason", e.Reason)
	return append(b, '\n')
}

func appendKey(b []byte, key string) []byte {
	b = append(b, ' ')
	b = append(b, key...)
	return append(b, '=')
}

func appendText(b []byte, key, s string) []byte {
	if s == "" {
		return b
	}
	return appendValue(appendKey(b, key), s)
}

func appendInt(b []byte, key string, n int) []byte {
	return appendOptInt(b, key, Opt[int]{n, n != 0})
}

func appendOptInt(b []byte, key string, n Opt[int]) []byte {
	if !n.Set {
		return b
	}
	return strconv.AppendInt(appendKey(b, key), int64(n.Value), 10)
}

func appendOptDuration(b []byte, key string, d Opt[time.Duration]) []byte {
	if !d.Set {
		return b
	}
	return appendSeconds(appendKey(b, key), d.Value)
}

// appendSeconds appends d in seconds, exactly: never for the longest duration
// (limit.Never), else a decimal fraction without trailing zeros.
func appendSeconds(b []byte, d time.Duration) []byte {
	if d == math.MaxInt64 {
		return append(b, "never"...)
	}
	ns := uint64(d)
	if d < 0 {
		b = append(b, '-')
		ns = -ns
	}
	b = strconv.AppendUint(b, ns/1e9, 10)
	if ns %= 1e9; ns == 0 {
		return b
	}
	b = append(b, '.')
	for unit := uint64(1e8); ns > 0; unit /= 10 {
		b = append(b, '0'+byte(ns/unit))
		ns %= unit
	}
	return b
}
