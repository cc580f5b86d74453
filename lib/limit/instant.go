package limit

import "time"

// Instant is t in UTC as RFC 3339 has it, "" for the zero time. encoding/json fails at a time.Time past
// the year 9999, which the time stamp of a file can be.
func Instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
