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

// Local returns when a clock in the zone shows what wall shows in UTC or, if summer time skips that, when it begins.
func Local(wall time.Time, zone *time.Location) time.Time {
	year, month, day := wall.Date()
	hour, minute, second := wall.Clock()
	at := time.Date(year, month, day, hour, minute, second, wall.Nanosecond(), zone)
	begin, end := at.ZoneBounds()
	_, offset := at.Zone()
	switch shown := at.Unix() + int64(offset); {
	case shown < wall.Unix(): // it may even be a time of the day before
		return end
	case shown > wall.Unix():
		return begin
	}
	return at
}
