package limit

import "time"

// Instant returns t in UTC in the form of RFC 3339, "" for the zero time. encoding/json would refuse a time
// past the year 9999, which a file can have as its mtime.
func Instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
