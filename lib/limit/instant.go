package limit

import "time"

// Instant is t in UTC as RFC 3339 has it, and "" for the zero time, for programs. It
// is a text because a time.Time past the year 9999, which the time stamp of a file can
// be, makes encoding/json fail.
func Instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
