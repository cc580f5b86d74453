package runlog

import (
	"strconv"
	"time"

	"adlock/lib/limit"
)

// timeLayout has a fixed width, so that lines can be sorted by it.
const timeLayout = "2006-01-02T15:04:05.000000Z"

// maxLine is the longest line in bytes, so that one event cannot fill the file or its reader's memory.
const maxLine = 1 << 20

const yes = "yes"

// appendLine appends the event's line to b, without the host if that is the file's.
func appendLine(b []byte, e *Event, fileHost string) []byte {
	begin := len(b)
	for key, value := range e.Fields() {
		if key == "host" && e.Host == fileHost {
			continue
		}
		if len(b) > begin {
			b = append(b, ' ')
		}
		b = append(append(b, key...), '=')
		switch v := value.(type) {
		case time.Time:
			b = v.UTC().AppendFormat(b, timeLayout)
		case string:
			b = appendValue(b, v)
		case bool:
			b = append(b, yes...)
		case int:
			b = strconv.AppendInt(b, int64(v), 10)
		case limit.Seconds:
			b = v.Append(b)
		}
	}
	return append(b, '\n')
}
