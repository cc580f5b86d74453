package runlog

import (
	"strconv"
	"time"

	"adlock/lib/limit"
)

// timeLayout has a fixed width, so that lines can be sorted by it.
const timeLayout = "2006-01-02T15:04:05.000000Z"

// maxLine is the longest line, in bytes with its newline. It is far above what a command line
// needs, and prevents one event from filling the file or its reader's memory.
const maxLine = 1 << 20

// yes is the value of a true field.
const yes = "yes"

// appendLine appends e as one line with its newline. fileHost is the HOST of the file that the
// line is for.
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
	b = appendText(b, "store", e.Store)
	b = appendInt(b, "pid", e.PID)
	b = appendText(b, "node", e.Node)
	b = appendText(b, "token", e.Token)
	if e.Shared {
		b = appendText(b, "shared", yes)
	}
	b = appendInt(b, "owner", e.Owner)
	b = appendText(b, "owner_node", e.OwnerNode)
	b = appendText(b, "owner_token", e.OwnerToken)
	b = appendText(b, "verdict", e.Verdict)
	b = appendOptDuration(b, "if_elapsed", e.IfElapsed)
	b = appendText(b, "if_elapsed_from", e.IfElapsedFrom)
	b = appendOptDuration(b, "expire_after", e.ExpireAfter)
	b = appendText(b, "expire_after_from", e.ExpireAfterFrom)
	b = appendOptDuration(b, "age", e.Age)
	b = appendOptDuration(b, "wait", Opt[time.Duration]{e.Wait, e.Wait != 0})
	b = appendOptDuration(b, "duration", e.Duration)
	b = appendOptInt(b, "status", e.Status)
	b = appendText(b, "signal", e.Signal)
	b = appendInt(b, "target", e.Target)
	b = appendInt(b, "count", e.Count)
	b = appendOptDuration(b, "overdue", e.Overdue)
	b = appendOptDuration(b, "idle", Opt[time.Duration]{e.Idle, e.Idle != 0})
	b = appendText(b, "work", e.Work)
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
	return limit.Seconds(d.Value).Append(appendKey(b, key))
}
