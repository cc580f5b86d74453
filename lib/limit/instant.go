package limit

import "time"

// Instant is t in UTC as RFC 3339 has it, and "" for the zero time, for programs. It is a string
// because encoding/json fails at a time.Time past the year 9999, and the time stamp of a file can
// be that late.
func Instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
